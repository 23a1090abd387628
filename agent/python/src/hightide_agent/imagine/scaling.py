"""GradScaler: it asks the device whether there were infinities (no), and scripts ask it for its scale."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .device import Device
from .ledger import Ledger


def install(ledger: Ledger, device: Device) -> Callable[[Any], None]:
    """Wrap the two methods of a module's GradScaler that read from the device."""

    def installed(module: Any) -> None:
        scaler = module.GradScaler
        if "get_scale" not in scaler.__dict__:  # a newer torch: those that it inherits are wrapped
            return
        get_scale, checked = scaler.get_scale, scaler._maybe_opt_step

        @functools.wraps(get_scale)
        def scale(self: Any) -> Any:
            value = get_scale(self)
            if self.is_enabled() and not value:
                ledger.at_line("policy", "GradScaler.get_scale", policy="initial scale")
                return self._init_scale
            return value

        @functools.wraps(checked)
        def step(self: Any, optimizer: Any, optimizer_state: Any, *args: Any, **kwargs: Any) -> Any:
            found = optimizer_state["found_inf_per_device"]
            with device.answering(0):  # no infinity, whatever other reads are answered with
                finite = not sum(value.item() for value in found.values())
            return optimizer.step(*args, **kwargs) if finite else None

        scaler.get_scale, scaler._maybe_opt_step = scale, step

    return installed
