"""What jobs need and request on a cluster, and the assignment of local GPUs.

- ``measuring`` measures the time of a job on this machine by running a short version of it;
- ``training_cost`` counts and times the parts of a network's training instead;
- ``resources`` computes the time, memory and GPU that one job requests, from such measurements;
- ``rule_resources`` passes these requests to the rules of the workflow;
- ``forecast`` adds up the requests of a plan: total time on a number of GPUs and cores;
- ``devices`` gives each local job a GPU of its own.
"""
