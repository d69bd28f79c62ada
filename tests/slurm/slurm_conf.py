"""The files of a test cluster: slurm.conf and its companions, fake GPUs, clients that find them.

Neither cgroups nor systemd, all daemons on loopback; ``cluster.py`` starts them.
"""

import os
import shutil
import socket

SLURM = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
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
{accounting}
{nodes}
PartitionName=cpu Nodes=ALL Default=YES MaxTime=60 State=UP
PartitionName=gpu Nodes=ALL MaxTime=60 State=UP
"""
SLURMDBD = """\
AuthType=auth/munge
AuthInfo={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket"""


def write_slurm(folder, port, names, size, accounting):
    """Write slurm.conf.

    Parameters
    ----------
    folder : Path
    port : int
        Of slurmctld; slurmdbd's is the next one, the nodes' begin ten further.
    names : sequence of str
        Of the nodes.
    size : tuple of int
        Processors, memory in MB and GPUs that each pretends to have.
    accounting : bool
        Whether slurmdbd keeps accounts.
    """
    host, (cpus, mem_mb, gpus) = socket.gethostname(), size
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 10 + number} "
        f"CPUs={cpus} RealMemory={mem_mb} State=UNKNOWN" + (f" Gres=gpu:{gpus}" if gpus else "")
        for number, name in enumerate(names)
    )
    accounting_lines = (
        ACCOUNTING.format(port=port + 1, folder=folder) if accounting else NO_ACCOUNTING
    )
    text = SLURM.format(
        host=host, port=port, folder=folder, nodes=nodes, accounting=accounting_lines
    )
    (folder / "slurm.conf").write_text(text)


def write_slurmdbd(folder, port, storage_port):
    """Write slurmdbd.conf, which nobody else may read."""
    conf = folder / "slurmdbd.conf"
    text = SLURMDBD.format(
        folder=folder, host=socket.gethostname(), port=port, storage_port=storage_port
    )
    conf.write_text(text)
    conf.chmod(0o600)


def write_devices(folder, gpus):
    """Make GPUs that are another /dev/null, and gres.conf, which names them."""
    for number in range(gpus):
        device = folder / f"fakegpu{number}"
        if not device.exists():
            os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
    gres = f"Name=gpu File={folder}/fakegpu[0-{gpus - 1}]\n" if gpus else ""
    (folder / "gres.conf").write_text(gres)


def write_shims(folder, clients, searched):
    """Write clients that know this cluster: the plugin's job step takes SLURM_CONF away."""
    bins, conf = folder / "bin", folder / "slurm.conf"
    bins.mkdir(exist_ok=True)
    for name in clients:
        if client := shutil.which(name, path=searched):
            shim = bins / name
            shim.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {client} "$@"\n')
            shim.chmod(0o755)
