"""What a graph is: values only, standard library only."""
