"""What drawing needs beside numbers: the look of all figures, heat maps, lines, tables as pictures."""
