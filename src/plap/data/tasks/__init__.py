"""What is to be predicted for each node: one class, several labels, or a number; one file and line each."""

from plap.data.tasks.multiclass import Multiclass
from plap.data.tasks.multilabel import Multilabel
from plap.data.tasks.regression import Regression
from plap.data.tasks.task import TASKS, ClassNames, ClassWeight, Task, kind_of, training_task

__all__ = [
    "TASKS",
    "ClassNames",
    "ClassWeight",
    "Multiclass",
    "Multilabel",
    "Regression",
    "Task",
    "kind_of",
    "training_task",
]

TASKS |= {kind.name: kind for kind in (Multiclass, Multilabel, Regression)}
