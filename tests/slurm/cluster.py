"""A real SLURM on this machine: loopback, fake GPUs, neither systemd nor cgroups.

Every process is started in its own session, and ended by its id alone, or by the kernel if the
process that started it is killed.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

NODES = ("node0", "node1")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "sacct")
# Daemons and clients are looked for here too: an ordinary user's PATH has no sbin.
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16800
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Credentials expire after two minutes by default, and a requeued job waits for that long.
AuthInfo=socket={folder}/munge.socket,cred_expire=15
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
# No cgroups: processes are followed through /proc.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
# Memory limits are enforced by polling.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=256
# Processors, memory and GPUs may exceed this machine's.
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
JobRequeue=1
KillWait=5
MinJobAge=86400
SlurmctldTimeout=120
SlurmdTimeout=60
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1,batch_sched_delay=0,defer_batch
AccountingStorageType=accounting_storage/none
NodeName=node0 NodeHostname={host} NodeAddr=127.0.0.1 Port=16810 {node}
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port=16811 {node}
PartitionName=cpu Nodes=ALL Default=YES MaxTime=60 State=UP
PartitionName=gpu Nodes=ALL MaxTime=60 State=UP
"""
NODE = "CPUs=4 RealMemory=8000 State=UNKNOWN Gres=gpu:2"


def obstacle():
    """Say why no cluster can be started here; None if it can."""
    programs = ("slurmctld", "slurmd", "sbatch", "munged", "setpriv")
    if missing := [name for name in programs if not shutil.which(name, path=SEARCHED)]:
        return f"{', '.join(missing)} missing; apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "SLURM's daemons are started as root here, and this is an ordinary user"
    return None


@dataclass
class Cluster:
    """A running cluster; see :func:`running`."""

    folder: Path  # of its configuration, state, logs and `bin`, which goes before the PATH
    pids: dict[str, int] = field(default_factory=dict)

    @property
    def environment(self):
        """What a command needs to reach this cluster, and no other."""
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }

    def call(self, *command, check=True):
        """Return what a client prints."""
        result = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr or result.stdout}")
        return result.stdout

    def start(self):
        """Write the configuration and start everything, each after what it needs."""
        for name in ("bin", "state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._configure()
        self._munge()
        self.start_controller()
        for node in NODES:
            self._launch(node, "slurmd", "-D", "-f", str(self.folder / "slurm.conf"), "-N", node)
        self._await("nodes", lambda: self.call("sinfo", "-h", "-N", "-o", "%T").split())

    def start_controller(self):
        """Start slurmctld, again after :meth:`stop_one`; it takes its state up."""
        self._launch("slurmctld", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._await("slurmctld", lambda: "UP" in self.call("scontrol", "ping"))

    def stop_one(self, name):
        """End one of the processes by its id, and wait for that."""
        pid = self.pids.pop(name)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while _runs(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def cancel(self):
        """Cancel all jobs, and wait until they are gone."""
        with suppress(RuntimeError, subprocess.TimeoutExpired):
            if jobs := self.call("squeue", "-h", "-o", "%i").split():
                self.call("scancel", *jobs, check=False)
            deadline = time.monotonic() + 20
            while self.call("squeue", "-h").strip() and time.monotonic() < deadline:
                time.sleep(0.2)

    def stop(self):
        """Cancel all jobs, and end what was started, last first."""
        self.cancel()
        for name in list(self.pids)[::-1]:
            self.stop_one(name)

    def _configure(self):
        """Write slurm.conf, GPUs that are another /dev/null, and clients that find the cluster."""
        conf = self.folder / "slurm.conf"
        host = socket.gethostname()
        conf.write_text(CONFIGURATION.format(host=host, folder=self.folder, node=NODE))
        for number in range(2):
            device = self.folder / f"fakegpu{number}"
            os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/fakegpu[0-1]\n")
        for name in CLIENTS:
            # The plugin's job step takes SLURM_CONF away.
            if client := shutil.which(name, path=SEARCHED):
                shim = self.folder / "bin" / name
                shim.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {client} "$@"\n')
                shim.chmod(0o755)

    def _munge(self):
        key, place = self.folder / "munge.key", str(self.folder / "munge.socket")
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = ("pid", "log", "seed")
        options = [f"--{name}-file={self.folder}/munge.{name}" for name in files]
        self._launch("munged", "munged", "-F", f"--socket={place}", f"--key-file={key}", *options)
        self._await("munged", lambda: self.call("munge", "-n", "-S", place))

    def _launch(self, name, program, *arguments):
        path = shutil.which(program, path=SEARCHED)
        assert path is not None
        with (self.folder / f"{name}.out").open("ab") as output:
            process = subprocess.Popen(
                # Should this process be killed, they end with it.
                ["setpriv", "--pdeathsig", "TERM", path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pids[name] = process.pid

    def _await(self, name, ready, seconds=30):
        """Ask until there is an answer: a daemon that runs need not listen yet."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(RuntimeError, subprocess.TimeoutExpired):
                answer = ready()
                if answer if not isinstance(answer, list) else set(answer) == {"idle"}:
                    return
            if time.monotonic() > deadline:
                output = (self.folder / f"{name}.out").read_text() if name in self.pids else ""
                raise RuntimeError(
                    f"{name} does not answer after {seconds:.0f} s; {output[-2000:]}"
                )
            time.sleep(0.1)


@contextmanager
def running(folder):
    """Start a cluster, and end it however the block ends."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _runs(pid):
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"
