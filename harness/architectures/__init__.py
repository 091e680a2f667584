"""How agents of ours work over a model: a plain loop, and the ways in which several of them work together."""
