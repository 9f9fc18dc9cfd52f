"""What readers of files share: restricted unpickling, members of zips and folders, arrays a row at a time, seals."""
