"""Check the stated errors of linear combinations of many laws against oracles that share no code with the package.

Run with ``python benchmarks/sweep.py`` (about twenty minutes on two cores), or with ``--quick`` for a random subset. Each
case evaluates cdf, sf, pdf and ppf at the center, in the tails, at the ends of the support and at singular points. A
violation is a result whose true error exceeds ten times the stated error plus 1e-12, or that lacks a property of every
distribution function, such as monotonicity. A case that takes more than ``--limit`` seconds of CPU time is stopped,
counted as slow, and not judged. The laws and the checks are in ``tests/law/cases.py``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[0] = str(ROOT / "tests")  # replaces this folder, whose law.py would shadow tests/law

from law.cases import (
    HARD,
    LAWS,
    REVIEW,
    Case,
    Finding,
    Oracle,
    Outcome,
    TooSlow,
    cases_of,
    check,
    points_of,
    slack_of,
    sum_std,
    time_limit,
)

RESULTS = ROOT / "benchmarks" / "results" / "sweep.txt"
LINE = "{:16s} {:>5s} {:>7s} {:>5s} {:>9s} {:>9s} {:>9s} {:>6s} {:>8s} {:>6s}  {}"
SHARP = 1e-10
"""Oracle bounds narrower than this are practically exact."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--quick", type=int, nargs="?", const=200, help="only a random subset of this many cases"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--laws", nargs="+", help="only laws with these names, or whose names contain one of them"
    )
    parser.add_argument("--review", action="store_true", help="only sums that failed in an earlier version")
    parser.add_argument(
        "--hard", action="store_true", help="time, case by case, sums with poles, jumps and atoms"
    )
    parser.add_argument("--methods", nargs="+", help="only these methods")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds after which a case is stopped")
    parser.add_argument("--verbose", action="store_true", help="print each violation")
    parser.add_argument("--violations", type=Path, help="write all violations to this file, worst first")
    parser.add_argument(
        "--out", type=Path, default=None, help="file for the table; by default, only a full sweep is written"
    )
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Case]:
    cases = [] if options.review else [case for name in LAWS for case in cases_of(name)]
    cases += REVIEW.values()
    if options.laws:
        parts = [part for part in options.laws if part not in LAWS]
        wanted = {name for name in LAWS if name in options.laws or any(part in name for part in parts)}
        cases = [case for case in cases if case.law in wanted]
    if options.methods:
        cases = [case for case in cases if case.method in options.methods]
    cases = list(dict.fromkeys(cases))
    if options.quick and options.quick < len(cases):
        rng = np.random.default_rng(options.seed)
        cases = [cases[i] for i in sorted(rng.choice(len(cases), options.quick, replace=False))]
    return cases


def slow(outcome: Outcome) -> bool:
    """Whether the case was stopped at the time limit, so that its answers were not judged."""
    return any(finding.kind == "slow" for finding in outcome.findings)


def violations(outcome: Outcome) -> list[Finding]:
    return [finding for finding in outcome.findings if finding.kind != "slow"]


def table(outcomes: list[Outcome]) -> str:
    groups = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.case.law].append(outcome)
    head = LINE.format(
        "law",
        "cases",
        "refused",
        "slow",
        "true",
        "stated",
        "ratio",
        "sharp",
        "seconds",
        "failed",
        "kinds of violations",
    )
    lines = [head, "-" * len(head)]
    for name, group in groups.items():
        findings = [finding for outcome in group for finding in violations(outcome)]
        kinds = defaultdict(int)
        for finding in findings:
            kinds[finding.kind] += 1
        answered = [outcome for outcome in group if not outcome.refused and not slow(outcome)]
        lines.append(
            LINE.format(
                name,
                str(len(group)),
                str(sum(bool(outcome.refused) for outcome in group)),
                str(sum(slow(outcome) for outcome in group)),
                f"{max((outcome.true for outcome in answered), default=0.0):.1e}",
                f"{max((outcome.stated for outcome in answered), default=0.0):.1e}",
                f"{max((outcome.ratio for outcome in answered), default=0.0):.1e}",
                f"{np.mean([outcome.width < SHARP for outcome in answered] or [1]):.0%}",
                f"{max((outcome.seconds for outcome in group), default=0.0):.1f}",
                str(sum(bool(violations(outcome)) for outcome in group)),
                ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items(), key=lambda item: -item[1])),
            )
        )
    failed = sum(bool(violations(outcome)) for outcome in outcomes)
    unjudged = sum(slow(outcome) for outcome in outcomes)
    seconds, oracle = (sum(getattr(o, name) for o in outcomes) for name in ("seconds", "oracle_seconds"))
    lines.append(
        f"{len(outcomes)} cases, {failed} with violations, {unjudged} slow; {seconds:.0f} s, and the oracles {oracle:.0f} s"
    )
    return "\n".join(lines)


PROBABILITIES = {"cdf", "sf", "ppf"}


def worst_first(outcomes: list[Outcome]) -> list[str]:
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    findings.sort(
        key=lambda f: (
            f.kind == "slow",
            f.kind not in PROBABILITIES | {"raises"},
            -min(f.true, 1e3),
            f.stated,
        )
    )
    return [str(finding) for finding in findings]


POINTS = 30
CALLS = ("cdf", "sf", "pdf", "ppf")
TARGET_SECONDS, TARGET_ERROR = 1.0, 1e-9


def timed(job: tuple[Case, float]) -> str:
    """CPU seconds of each method at 30 points, and the errors of the cdf, on one line."""
    case, limit = job
    y = points_of(case)
    y = y[np.linspace(0, len(y) - 1, POINTS).astype(int)]
    levels = np.linspace(0.5 / POINTS, 1 - 0.5 / POINTS, POINTS)
    seconds, errors, stated, true = dict.fromkeys(CALLS, np.nan), {}, np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with time_limit(limit):
                start = time.process_time()
                Y = case.combination()
                for name in CALLS:
                    if name == "pdf" and np.any(Y._batch.atomic):
                        continue
                    value, error = getattr(Y, name)(levels if name == "ppf" else y, return_error=True)
                    seconds[name], start = time.process_time() - start, time.process_time()
                    errors[name] = value, error
        except TooSlow:
            pass
        else:
            stated = 0.0
            for name, at in (("cdf", y), ("sf", y), ("ppf", errors["ppf"][0])):
                # where the rounding of y alone changes the probability, no method can do better
                change = np.ptp(Y.cdf(at + np.multiply.outer([-1, 1], slack_of(case, at))), axis=0)
                stated = max(
                    stated, float(np.max(errors[name][1], initial=0.0, where=change < 0.1 * TARGET_ERROR))
                )
        if "cdf" in errors:
            lower, upper = Oracle(case, size=2**17, budget=3e6).cdf(y)
            cdf = errors["cdf"][0]
            true = float(np.max(np.maximum(np.maximum(lower - cdf, cdf - upper), 0.0)))
    total = sum(value for value in seconds.values() if np.isfinite(value))
    met = total <= TARGET_SECONDS and stated <= TARGET_ERROR
    columns = "".join(f"{seconds[name]:7.2f}" for name in CALLS)
    part = case.normal_std / sum_std(LAWS[case.law].law, case.row)
    return (
        f"{case.law:16s} {len(case.row):4d} {part:8.0e}{columns}{total:7.2f} {stated:9.1e} {true:9.1e}"
        f"   {'met' if met else 'MISSED'}"
    )


def hard(options: argparse.Namespace) -> None:
    cases = [case for case in HARD if not options.laws or any(part in case.law for part in options.laws)]
    print(
        f"CPU seconds at {POINTS} points; the largest stated error of a probability; how far the cdf is outside bounds\n"
        f"{'law':16s} {'D':>4s} {'normal':>8s}{'cdf':>7s}{'sf':>7s}{'pdf':>7s}{'ppf':>7s}{'sum':>7s} "
        f"{'stated':>9s} {'outside':>9s}   at most {TARGET_SECONDS:g} s and {TARGET_ERROR:g}"
    )
    missed = 0
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        for line in pool.imap(timed, [(case, options.limit) for case in cases], chunksize=1):
            missed += line.endswith("MISSED")
            print(line, flush=True)
    print(f"{len(cases) - missed} of {len(cases)} met")


def run(job: tuple[Case, float]) -> Outcome:
    return check(job[0], limit=job[1])


def main() -> None:
    options = arguments()
    if options.hard:
        hard(options)
        return
    cases, outcomes, start = chosen(options), [], time.perf_counter()
    jobs = [(case, options.limit) for case in cases]
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=40) as pool:
        for outcome in pool.imap(run, jobs, chunksize=2):
            outcomes.append(outcome)
            if options.verbose:
                for finding in outcome.findings:
                    print(finding, flush=True)
            if options.violations and (len(outcomes) % 20 == 0 or len(outcomes) == len(cases)):
                options.violations.write_text("\n".join(worst_first(outcomes)) + "\n")
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)} of {len(cases)}", end="", file=sys.stderr, flush=True)
    text = table(outcomes) + f"\n{time.perf_counter() - start:.0f} s with {options.jobs} processes"
    print(text)
    full = not (options.quick or options.review or options.laws or options.methods)
    out = options.out or (RESULTS if full else None)
    if out:
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
