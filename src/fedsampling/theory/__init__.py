"""Theory: closed forms that simulations are held against."""
