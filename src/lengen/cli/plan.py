"""What a run would cost on given devices, from its config alone: FLOPs, memory, communication, hours.

T is the rate that matrix products of the model's size reach, not the data sheet's. Nothing is assumed to overlap.
"""

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from lengen.checks import unknown_name
from lengen.cli.listing import add_json_flag, to_json

if TYPE_CHECKING:  # torch takes a second to import, and `lengen plan --help` should not wait for it
    from lengen.train.cost import Cost, Workload


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen plan fig2-jump1 --scale paper --precision bf16 --devices 8 --tflops 200\n"
        "  lengen plan language-short --devices 64 --tflops 200 --sharding full --json\n"
        "  lengen plan fig3a-depth3 --devices 1 --tflops 0.085 --memory-gbps 10   # one core"
    )
    parser.add_argument(
        "preset", metavar="PRESET", help="see `lengen presets`; or language-short, language-long (Table 5)"
    )
    parser.add_argument("--scale", default="paper", metavar="SCALE", help="smoke, cpu or paper (default)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), help="default: the preset's own")
    parser.add_argument("--devices", type=int, required=True, metavar="N", help="that train one model")
    parser.add_argument("--tflops", type=float, required=True, metavar="T", help="of one device, reached")
    parser.add_argument(
        "--sharding", choices=("none", "full"), default="none", help="a copy on each device (default), or a slice"
    )
    for flag, what in (("--memory-gbps", "of a device's memory"), ("--link-gbps", "between devices")):
        parser.add_argument(flag, type=float, metavar="X", help=f"GB/s {what} (default: an A100's)")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from lengen.train.cost import A100, Device, cost_of

    for flag, value in (
        ("--devices", args.devices),
        ("--tflops", args.tflops),
        ("--memory-gbps", args.memory_gbps),
        ("--link-gbps", args.link_gbps),
    ):
        if value is not None and not value > 0:
            raise ValueError(f"{flag} {value:g} is not positive; use a number above 0")
    workload = workload_named(args.preset, args.scale)
    workload = replace(workload, precision=args.precision or workload.precision)
    device = Device(args.tflops, args.memory_gbps or A100.memory_gbps, args.link_gbps or A100.link_gbps)
    cost = cost_of(workload, device, args.devices, args.sharding)
    print(to_json(asdict(cost)) if args.json else in_words(cost))
    return 0


def workload_named(preset: str, scale: str) -> "Workload":
    from lengen.experiments.presets import PRESETS, preset_config
    from lengen.language.cost import LANGUAGE
    from lengen.train.cost import workload_of

    if preset in LANGUAGE:
        if scale != "paper":
            raise ValueError(f"{preset} is planned as in Table 5, not at --scale {scale}; leave --scale out")
        return LANGUAGE[preset]
    if preset not in PRESETS:
        raise unknown_name("preset", preset, [*PRESETS, *LANGUAGE], "see `lengen presets`")
    return workload_of(preset_config(preset, scale))


def in_words(cost: "Cost") -> str:
    def share(seconds: float) -> str:
        return f"{1e3 * seconds:,.1f} ms"

    memory = (
        f"weights {_size(cost.weight_bytes)}, gradients {_size(cost.gradient_bytes)}, "
        f"optimizer {_size(cost.optimizer_bytes)}, activations {_size(cost.activation_bytes)}"
    )
    step = (
        f"products {share(cost.matmul_seconds)}, memory {share(cost.memory_seconds)}, "
        f"host {share(cost.host_seconds)}, communication {share(cost.communication_seconds)}"
    )
    lines = {
        "parameters": f"{cost.parameters:,}",
        "FLOPs": f"{cost.flops_per_step:.3g} a step, {cost.flops:.3g} in all",
        "memory": f"{_size(cost.total_bytes)} a device: {memory}",
        "communication": f"{_size(cost.communication_bytes)} a step and device",
        "step": f"{share(cost.step_seconds)}: {step}",
        "time": f"{cost.hours:,.2f} hours, {cost.device_hours:,.2f} device-hours",
    }
    return "\n".join(f"{name:<14} {text}" for name, text in lines.items())


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.2f} GB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.2f} MB"
