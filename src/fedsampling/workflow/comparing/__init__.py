"""Competition of users' samplers with all others.

The comparison is the cross matrix (``papers/crossmatrix``) with additional samplers.  If the runs
of the other samplers are published, only the new samplers are run.  Runs go to the store;
summaries, artefacts and a report of the comparison go to ``<results>/compare/<sampler>/``.
"""

from fedsampling.workflow.comparing.command import Request as Request
from fedsampling.workflow.comparing.command import compare as compare
from fedsampling.workflow.comparing.own_problem import OwnProblem as OwnProblem
