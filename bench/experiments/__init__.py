"""What bench/table3.py runs and bench/results.py shows: the experiments as data, runs that travel between machines, and figures."""
