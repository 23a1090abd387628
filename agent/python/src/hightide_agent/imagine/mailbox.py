"""Objects that played ranks send each other, by way of files. What only a sender can know, as the shapes that one
stage of a pipeline tells the next, comes from that rank where it is played too.

    send_object_list(objects, dst) ─▶ FOLDER/objects/p2p-SRC-DST-N ─▶ recv_object_list(objects, src) of the same number
    broadcast_object_list by src   ─▶ FOLDER/objects/all-GROUP-SRC-N ─▶ the others' of the same number
    a receive in vain              ─▶ FOLDER/objects/stopped-RANK    ─▶ those who wait for RANK wait no longer
"""

from __future__ import annotations

import os
import pickle
from time import monotonic, sleep
from typing import Any, Dict, List, Optional, Set

PATIENCE = 120  # seconds: a sender that starts later than we do


class Mailbox:
    """Letters of one world. `ranks` are those that are played."""

    def __init__(self, folder: str, me: int) -> None:
        self.folder = os.path.join(folder, "objects")
        self.me = me
        self.ranks = {int(r) for r in os.environ.get("HIGHTIDE_IMAGINE_PLAYED", "").split(",") if r.isdigit()}
        self._numbers: Dict[str, int] = {}

    def send(self, address: str, objects: List[Any]) -> None:
        """Leave objects at an address; what cannot be pickled is left out."""
        path = self._path(address)
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with open("%s.new%d" % (path, self.me), "wb") as file:
                pickle.dump(list(objects), file)
            os.replace(file.name, path)
        except (OSError, pickle.PicklingError, AttributeError, TypeError):
            pass

    def receive(self, address: str, sender: int) -> Optional[List[Any]]:
        """The objects left at an address; None where the sender is not played, or never sends."""
        path = self._path(address)
        if sender not in self.ranks or sender == self.me:
            return None
        until = monotonic() + PATIENCE
        while not os.path.exists(path):
            if monotonic() > until or os.path.exists(self._stopped(sender)):
                return None
            sleep(0.01)
        with open(path, "rb") as file:  # by a process of the same program, in a folder of the same user
            objects: List[Any] = pickle.load(file)
        return objects

    def unanswered(self, sender: int) -> str:
        """Why nothing came of a sender, and which ranks to play. One that is played sends none where it failed, or
        waits for a rank in between that is not. Who waits for us is told not to."""
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with open(self._stopped(self.me), "wb"):
                pass
        except OSError:  # then they wait for as long as their patience
            pass
        waits = "rank %d waits for an object of rank %d, which " % (self.me, sender)
        played = self.ranks | {self.me, sender}
        if sender not in self.ranks:
            return "%sis not played. Play that one too: --play %s" % (waits, _list(played))
        all_of_them = set(range(max(played) + 1))
        if all_of_them == played:
            return waits + "is played and sent none: it failed, or waits for another"
        return "%sis played and sent none. Play those in between too: --play %s" % (waits, _list(all_of_them))

    def _stopped(self, rank: int) -> str:
        """The file that says that a rank waited in vain, and so sends nothing more."""
        return os.path.join(self.folder, "stopped-%d" % rank)

    def _path(self, address: str) -> str:
        number = self._numbers[address] = self._numbers.get(address, 0) + 1
        return os.path.join(self.folder, "%s-%d" % (address, number))


def _list(ranks: Set[int]) -> str:
    return ",".join(map(str, sorted(ranks)))
