"""A real SLURM on this machine: loopback, fake GPUs, neither systemd nor cgroups.

The tests marked `slurm` start one; by hand:

    python tests/slurm/cluster.py /var/tmp/cluster        # runs until Ctrl-C
    export PATH=/var/tmp/cluster/bin:$PATH                # in another shell

Every process is started in its own session, its id is kept in ``pids.json``, and it is ended by
that id alone, or by the kernel if the process that started it is killed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import slurm_conf

PACKAGES = ("slurm-wlm", "munge")
ACCOUNTING = ("slurmdbd", "mariadb-server")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "sacct", "sacctmgr")
# Daemons and clients are looked for here too: an ordinary user's PATH has no sbin.
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def obstacle(accounting=False):
    """Say why no cluster can be started here; None if it can."""
    programs = ["slurmctld", "slurmd", "sbatch", "munged", "setpriv"]
    programs += ["slurmdbd", "mariadbd", "mariadb-install-db"] if accounting else []
    missing = [name for name in programs if not shutil.which(name, path=SEARCHED)]
    if missing:
        packages = " ".join((*PACKAGES, *(ACCOUNTING if accounting else ())))
        return f"{', '.join(missing)} missing; apt-get install --no-install-recommends {packages}"
    if os.geteuid() != 0:
        return "SLURM's daemons are started as root here, and this is an ordinary user"
    return None


@dataclass
class Cluster:
    """A running cluster; see :func:`running`.

    Parameters
    ----------
    folder : Path
        Of its configuration, state, logs and ``bin``, which goes before the PATH.
    nodes, cpus, mem_mb, gpus : int
        Nodes, and what each pretends to have.
    accounting : bool
        Whether slurmdbd keeps accounts.
    port : int
        The first of thirty.
    """

    folder: Path
    nodes: int = 2
    cpus: int = 4
    mem_mb: int = 8000
    gpus: int = 2
    accounting: bool = False
    port: int = 16800
    pids: dict[str, int] = field(default_factory=dict)

    @property
    def names(self):
        """The nodes' names."""
        return [f"node{number}" for number in range(self.nodes)]

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
        for name in ("state", *(f"spool-{node}" for node in self.names)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self._configure()
        self._munge()
        if self.accounting:
            self._database()
        self.start_controller()
        for node in self.names:
            self.start_node(node)
        self._await("nodes", lambda: self.call("sinfo", "-h", "-N", "-o", "%T").split())

    def start_controller(self):
        """Start slurmctld, again after :meth:`stop_one`; it takes its state up."""
        self._launch("slurmctld", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._await("slurmctld", lambda: "UP" in self.call("scontrol", "ping"))

    def start_node(self, node):
        """Start a node's slurmd."""
        conf = str(self.folder / "slurm.conf")
        self._launch(node, "slurmd", "-D", "-f", conf, "-N", node)

    def stop_one(self, name, how=signal.SIGTERM):
        """End one of the processes by its id, and wait for that."""
        pid = self.pids.pop(name)
        self._note()
        with suppress(ProcessLookupError):
            os.kill(pid, how)
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
        slurm_conf.write_shims(self.folder, CLIENTS, SEARCHED)
        slurm_conf.write_devices(self.folder, self.gpus)
        slurm_conf.write_slurm(
            self.folder, self.port, self.names, (self.cpus, self.mem_mb, self.gpus), self.accounting
        )

    def _munge(self):
        key, place = self.folder / "munge.key", str(self.folder / "munge.socket")
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = ("pid", "log", "seed")
        options = [f"--{name}-file={self.folder}/munge.{name}" for name in files]
        self._launch("munged", "munged", "-F", f"--socket={place}", f"--key-file={key}", *options)
        self._await("munged", lambda: self.call("munge", "-n", "-S", place))

    def _database(self):
        data, place = self.folder / "mysql", str(self.folder / "mysql.socket")
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"],
            check=True,
            capture_output=True,
        )
        self._launch(
            "mariadbd",
            "mariadbd",
            "--no-defaults",
            "--user=root",
            f"--datadir={data}",
            f"--socket={place}",
            f"--pid-file={self.folder}/mysql.pid",
            "--bind-address=127.0.0.1",
            f"--port={self.port + 2}",
        )
        client = ("mariadb", "--no-defaults", "-u", "root", f"--socket={place}", "-e")
        self._await("mariadbd", lambda: self.call(*client, "select 1"))
        self.call(*client, "create user slurm@'127.0.0.1' identified by 'slurm'")
        self.call(*client, "grant all on slurm_acct_db.* to slurm@'127.0.0.1'")
        slurm_conf.write_slurmdbd(self.folder, self.port + 1, self.port + 2)
        self._launch("slurmdbd", "slurmdbd", "-D", SLURM_CONF=str(self.folder / "slurm.conf"))
        self._await("slurmdbd", lambda: self.call("sacctmgr", "-n", "show", "cluster") or True)

    def _launch(self, name, program, *arguments, **environment):
        path = shutil.which(program, path=SEARCHED)
        assert path is not None
        with (self.folder / f"{name}.out").open("ab") as output:
            process = subprocess.Popen(
                # Should this process be killed, they end with it.
                ["setpriv", "--pdeathsig", "TERM", path, *arguments],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pids[name] = process.pid
        self._note()

    def _note(self):
        (self.folder / "pids.json").write_text(json.dumps(self.pids))

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
def running(folder, **options):
    """Start a cluster, and end it however the block ends."""
    cluster = Cluster(folder, **options)
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


def main():
    """Run a cluster until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--accounting", action="store_true")
    arguments = parser.parse_args()
    if reason := obstacle(arguments.accounting):
        sys.exit(reason)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    clock = time.perf_counter()
    with running(
        arguments.folder.resolve(), nodes=arguments.nodes, accounting=arguments.accounting
    ) as cluster:
        print(f"ready after {time.perf_counter() - clock:.1f} s: {cluster.pids}", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
