"""What methods promise."""

from skeleton_cgl.engine.checking import of_learners
from skeleton_cgl.engine.checking.bench import Bench
from skeleton_cgl.engine.checking.promise import promise
from skeleton_cgl.scenarios.made_up import Setting


@promise("works in class-il and in task-il", after=(of_learners.learns,))
def works_in_both_settings(bench: Bench) -> str:
    if bench.setting == "task-il":
        return "needs revealed tasks, so that it is for task-il alone"
    other: Setting = "task-il"
    scenario = bench.new_scenario(other)
    learner = bench.learner(scenario)
    for step in range(1, len(bench.lessons) + 1):
        learner.learn(bench.experience(bench.lessons[:step], scenario), seed=step)
    scenario.score(learner.answer(scenario.queries(bench.lessons)), bench.lessons)
    return ""


CHECKS = (
    of_learners.is_made,
    of_learners.learns,
    works_in_both_settings,
    of_learners.leaves_data_alone,
    of_learners.repeats_itself,
    of_learners.keeps_nothing_outside,
    of_learners.saves_what_it_remembers,
    of_learners.is_the_same_in_a_tree,
)
