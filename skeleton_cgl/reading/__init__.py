"""What every reader of files shares: restricted unpickling, members of zips and folders, arrays a row at a time."""
