"""What methods and backbones promise alike."""

import torch

from skeleton_cgl.engine.checking.bench import Bench
from skeleton_cgl.engine.checking.promise import Broken, promise
from skeleton_cgl.engine.contents import Contents, content_of, differing, outside_of
from skeleton_cgl.engine.trial import refuse_forgetting
from skeleton_cgl.learning.learner import Batch, Learner
from skeleton_cgl.learning.state import from_bytes, to_bytes
from skeleton_cgl.scenarios.scenario import Queries, Samples

_EPOCHS_TO_LEARN = (8, 40)
"""Tried one after the other: most need few."""


@promise("can be made with its defaults")
def is_made(bench: Bench) -> str:
    bench.component()
    return ", ".join(f"{name}={value}" for name, value in bench.subject.parameters.items())


@promise("learns")
def learns(bench: Bench) -> str:
    """Halfway from chance to all right, on what it was taught: nothing that learns at all stays below."""
    experience = bench.experience(bench.lessons[:1])
    chance = 1 / len(experience.outputs)
    share = 0.0
    for epochs in _EPOCHS_TO_LEARN:
        learner = bench.learner(epochs=epochs)
        learner.learn(experience, seed=0)
        share = _right(learner, experience.training)
        if share >= (1 + chance) / 2:
            break
    words = f"{share:.0%} of its first lesson right after {epochs} epochs, {chance:.0%} by chance"
    if share < (1 + chance) / 2:
        raise Broken(f"{words}; does the loss depend on the outputs, and do gradients reach the weights?")
    first, now = (dict(each.backbone.named_parameters()) for each in (bench.learner(), learner))
    if all(torch.equal(first[name], now[name]) for name in now):
        raise Broken("none of the backbone's weights changed, the head alone learned; are the embeddings detached?")
    return words


def _right(learner: Learner, samples: Samples) -> float:
    """Return the share of samples that are answered rightly."""
    answers = learner.answer(Queries(samples.pool, samples.ids, samples.step))
    return (answers.argmax(dim=1) == samples.labels).double().mean().item()


@promise("leaves experiences and batches as they are")
def leaves_data_alone(bench: Bench) -> str:
    scenario = bench.new_scenario(bench.setting)
    learner = bench.learner(scenario)
    usual = learner.batch
    batches: list[tuple[Batch, str]] = []

    def noting(samples: Samples, training: bool = False) -> Batch:
        batch = usual(samples, training)
        batches.append((batch, content_of(batch)))
        return batch

    learner.__dict__["batch"] = noting
    for step in (1, 2):
        experience = bench.experience(bench.lessons[:step], scenario)
        before = _parts(experience.training, experience.validation)
        learner.learn(experience, seed=step)
        changed = differing(before, _parts(experience.training, experience.validation))
        if changed:
            raise Broken(f"{', '.join(changed)} changed while learning; work on a copy (`clone()`)")
    if any(content_of(batch) != content for batch, content in batches):
        raise Broken("a batch changed while learning, and is used again in the next epoch; work on a copy (`clone()`)")
    return ""


def _parts(training: Samples, validation: Samples) -> Contents:
    found = {"the data": content_of(training.pool.whole())}
    for part, samples in (("training", training), ("validation", validation)):
        for name in ("ids", "labels", "step"):
            found[f"`experience.{part}.{name}`"] = content_of(getattr(samples, name))
    return found


@promise("learns the same from the same seed, in every process")
def repeats_itself(bench: Bench) -> str:
    if len(set(bench.fresh.outcomes)) > 1:
        raise Broken(
            "two new processes learned different things; draw random numbers from torch, or from a generator of your "
            "own with the seed `learner.seed_of_lesson`, and use neither the clock nor the order of a set"
        )
    return ""


@promise("keeps nothing in modules, classes and default arguments")
def keeps_nothing_outside(bench: Bench) -> str:
    """What is learned after another order equals what is learned in a new process."""
    try:
        bench.alone(bench.lessons[::-1])
        same = bench.alone(bench.lessons) == bench.fresh.outcomes[0]
    except Exception:  # noqa: BLE001
        # What went well in a new process fails here, for whatever another learner left behind.
        same = False
    if not same:
        what = " and ".join(differing(bench.outside, outside_of(bench.subject.found))) or "something"
        raise Broken(
            f"{what} changed while other lessons were learned, and what is learned now is not what a new process "
            "learns; keep it in `self`, made in `__init__`"
        )
    return ""


@promise("saves and restores all that it remembers")
def saves_what_it_remembers(bench: Bench) -> str:
    first, second = (bench.experience(bench.lessons[:step]) for step in (1, 2))
    refuse_forgetting(bench.learner, first, second)
    return ""


@promise("learns in a tree of orders what it learns alone")
def is_the_same_in_a_tree(bench: Bench) -> str:
    lessons, saved = bench.lessons, None
    for step in range(1, len(lessons) + 1):
        learner = bench.learner()
        if saved is not None:
            learner.restore(from_bytes(saved))
            sibling = bench.learner()
            sibling.restore(from_bytes(saved))
            bench.learn(sibling, (*lessons[: step - 1], lessons[-1]))
        bench.learn(learner, lessons[:step])
        saved = to_bytes(learner.state())
    if bench.outcome(learner, lessons) != bench.alone(lessons):
        raise Broken(
            f"after {len(lessons)} lessons, each learned from the saved state of the one before, it is not what it is "
            "when it learns them in one go; look at what `state` and `restore` do later than the second lesson"
        )
    return ""
