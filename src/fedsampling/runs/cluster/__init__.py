"""What jobs need and request on a cluster, and the assignment of local GPUs.

- ``cost_model`` estimates a job's time and memory;
- ``resources`` computes the time, memory and GPU that a job requests, from such estimates;
- ``rule_resources`` passes these requests to the rules of the workflow;
- ``devices`` gives each local job a GPU of its own.
"""
