"""Which past tokens matter: leave-one-out influence and context sparsity (Sec. 5.3), for our models and any other."""
