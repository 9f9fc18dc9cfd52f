"""What is in a data set of each kind, counted, and told in words."""
