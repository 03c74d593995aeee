"""The public surface of onceproof: the names that a test of a user imports, each loaded when it is first used.

    from onceproof import Kill, Mode, Scenario, Verdict, leader_of, once

`import onceproof` itself loads no other module of the project. The fixtures `execute` and `onceproof_cluster` come from
the pytest plugin (docs/pytest.md).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take it for True; to import typing would double the import time
if TYPE_CHECKING:
    # The imports from faults are written by `python -m harness.fault_catalogue`.
    from faults.add_partitions import AddPartitions as AddPartitions
    from faults.at_moment import AtMoment as AtMoment
    from faults.broken_disk import BrokenDisk as BrokenDisk
    from faults.delete_offsets import DeleteOffsets as DeleteOffsets
    from faults.delete_records import DeleteRecords as DeleteRecords
    from faults.elect_unclean import ElectUnclean as ElectUnclean
    from faults.fence_producer import FenceProducer as FenceProducer
    from faults.flaky_link import FlakyLink as FlakyLink
    from faults.flip_bits import FlipBits as FlipBits
    from faults.full_disk import FullDisk as FullDisk
    from faults.hold_requests import HoldRequests as HoldRequests
    from faults.kill import Kill as Kill
    from faults.kill_worker import KillWorker as KillWorker
    from faults.late_requests import LateRequests as LateRequests
    from faults.lower_feature import LowerFeature as LowerFeature
    from faults.pause import Pause as Pause
    from faults.pause_worker import PauseWorker as PauseWorker
    from faults.power_loss import PowerLoss as PowerLoss
    from faults.raise_min_isr import RaiseMinIsr as RaiseMinIsr
    from faults.reassign import Reassign as Reassign
    from faults.rebalance import Rebalance as Rebalance
    from faults.restart import Restart as Restart
    from faults.rolling_restart import RollingRestart as RollingRestart
    from faults.rolling_upgrade import RollingUpgrade as RollingUpgrade
    from faults.sever import Sever as Sever
    from faults.short_retention import ShortRetention as ShortRetention
    from faults.skew_clock import SkewClock as SkewClock
    from faults.slow_disk import SlowDisk as SlowDisk
    from faults.slow_link import SlowLink as SlowLink
    from faults.stall_worker import StallWorker as StallWorker
    from faults.starve import Starve as Starve
    from faults.transfer_leadership import TransferLeadership as TransferLeadership
    from faults.truncate_log import TruncateLog as TruncateLog
    from faults.unclean_election import UncleanElection as UncleanElection
    from faults.wipe_disk import WipeDisk as WipeDisk
    from harness.campaign import Execute as Execute
    from harness.campaign import Result as Result
    from harness.cluster_options import Choice as Choice
    from harness.clusters.containers.cluster import DockerCluster as DockerCluster
    from harness.clusters.existing import ExistingCluster as ExistingCluster
    from harness.clusters.local import LocalCluster as LocalCluster
    from harness.clusters.zookeeper import ZooKeeperCluster as ZooKeeperCluster
    from harness.contracts import Cluster as Cluster
    from harness.contracts import ConsumerOptions as ConsumerOptions
    from harness.contracts import Fault as Fault
    from harness.contracts import Mode as Mode
    from harness.contracts import ProducerOptions as ProducerOptions
    from harness.contracts import TopicSettings as TopicSettings
    from harness.contracts import Verdict as Verdict
    from harness.scenario import ChurnSettings as ChurnSettings
    from harness.scenario import ConsumerSettings as ConsumerSettings
    from harness.scenario import Pipeline as Pipeline
    from harness.scenario import PipelineSettings as PipelineSettings
    from harness.scenario import ProducerSettings as ProducerSettings
    from harness.scenario import Scenario as Scenario
    from harness.scenario import Timings as Timings
    from harness.scenario import TransactionSettings as TransactionSettings
    from harness.schedule import NO_FAULTS as NO_FAULTS
    from harness.schedule import Schedule as Schedule
    from harness.schedule import Window as Window
    from harness.schedule import every as every
    from harness.schedule import once as once
    from harness.schedule import overlapping as overlapping
    from harness.schedule import repeat as repeat
    from harness.schedule import rotating as rotating
    from harness.schedule import sequence as sequence
    from harness.schedule import together as together
    from harness.targets import Target as Target
    from harness.targets import active_controller as active_controller
    from harness.targets import consumer as consumer
    from harness.targets import copier as copier
    from harness.targets import every_broker as every_broker
    from harness.targets import everyone as everyone
    from harness.targets import follower_of as follower_of
    from harness.targets import group_coordinator as group_coordinator
    from harness.targets import laggard_of as laggard_of
    from harness.targets import leader_of as leader_of
    from harness.targets import majority as majority
    from harness.targets import minority as minority
    from harness.targets import other_controllers as other_controllers
    from harness.targets import other_zookeepers as other_zookeepers
    from harness.targets import output_leader as output_leader
    from harness.targets import producer as producer
    from harness.targets import replicas_of as replicas_of
    from harness.targets import some_brokers as some_brokers
    from harness.targets import transaction_coordinator as transaction_coordinator
    from harness.targets import worker as worker
    from harness.targets import zookeeper_leader as zookeeper_leader
    from harness.targets import zookeeper_majority as zookeeper_majority

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib would double the import time
# By module: the names that are taken from it. Type checkers read the imports above; a test compares the two.
_NAMES = {
    "harness.campaign": "Execute Result",
    "harness.cluster_options": "Choice",
    "harness.clusters.containers.cluster": "DockerCluster",
    "harness.clusters.existing": "ExistingCluster",
    "harness.clusters.local": "LocalCluster",
    "harness.clusters.zookeeper": "ZooKeeperCluster",
    "harness.contracts": "Cluster ConsumerOptions Fault Mode ProducerOptions TopicSettings Verdict",
    "harness.scenario": (
        "ChurnSettings ConsumerSettings Pipeline PipelineSettings ProducerSettings Scenario Timings "
        "TransactionSettings"
    ),
    "harness.schedule": (
        "NO_FAULTS Schedule Window every once overlapping repeat rotating sequence together"
    ),
    "harness.targets": (
        "Target active_controller consumer copier every_broker everyone follower_of group_coordinator "
        "laggard_of leader_of majority minority other_controllers other_zookeepers output_leader "
        "producer replicas_of some_brokers transaction_coordinator worker zookeeper_leader "
        "zookeeper_majority"
    ),
}
_MODULE_OF = {
    **{name: module for module, names in _NAMES.items() for name in names.split()},
    # One fault per file: rolling_restart.py contains RollingRestart.
    **{
        file[:-3].title().replace("_", ""): f"faults.{file[:-3]}"
        for file in os.listdir(os.path.join(_HERE, "faults"))  # noqa: PTH118, PTH208
        if file.endswith(".py") and not file.startswith("_")
    },
}

__all__ = sorted(_MODULE_OF)


def _resolve(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'onceproof' has no attribute {name!r}")
    import importlib

    pin("harness")
    pin("faults")
    value: object = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # else a type checker would accept any name
    __getattr__ = _resolve


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def pin(package: str) -> None:
    """Load a top-level package of onceproof from beside this file, whatever folders sys.path begins with.

    Raise ImportError where another package of that name is loaded already.
    """
    folder = os.path.join(_HERE, package)  # noqa: PTH118
    loaded = sys.modules.get(package)
    if loaded is not None:
        if folder not in (os.path.abspath(path) for path in getattr(loaded, "__path__", ())):  # noqa: PTH100
            raise ImportError(collision(package, getattr(loaded, "__file__", None) or str(loaded)))
        return
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        package,
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[package] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def collision(package: str, other: str) -> str:
    """Return one line about a package of the user that has the name of a package of onceproof."""
    return (
        f"onceproof: {other} has the name of onceproof's own package {package!r}, and Python loads only one of them; "
        "rename yours, or run pytest with --import-mode=importlib if your tests do not import it, "
        "or with -p no:onceproof_pytest if they do not use onceproof"
    )
