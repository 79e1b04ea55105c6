"""The conventions of scikit-learn's estimators, without importing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from plap.errors import InputError

E = TypeVar("E", bound="Estimator")


class Estimator:
    """What :func:`sklearn.base.clone` and :func:`sklearn.utils.validation.check_is_fitted` ask for.

    A subclass stores the arguments of its constructor unchanged under their own names, checks them in
    ``fit``, and ends the names of what ``fit`` found in an underscore.

    Examples
    --------
    >>> class Threshold(Estimator):
    ...     def __init__(self, at=0.5):
    ...         self.at = at
    >>> Threshold().set_params(at=0.7)
    Threshold(at=0.7)
    """

    _estimator_type = "classifier"

    @classmethod
    def _param_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor as they are now; ``deep`` has no meaning here."""
        return {name: getattr(self, name) for name in sorted(self._param_names())}

    def set_params(self: E, **params: Any) -> E:
        """Change arguments of the constructor; returns the estimator."""
        names = self._param_names()
        for name in params:
            if name not in names:
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def check_fitted(self) -> None:
        """Raise scikit-learn's NotFittedError before ``fit``."""
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError  # noqa: PLC0415

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags  # noqa: PLC0415

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
