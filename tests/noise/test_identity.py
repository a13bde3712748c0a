"""A law is what it is made of: equality, hash and caches go by parameters and data, never by a name."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wienerkernel import (
    Expansion,
    Family,
    LinearCombination,
    Mixture,
    OrthogonalBasis,
    Residuals,
    SmoothedResiduals,
    as_noise,
)
from wienerkernel.io.store.model import RECORDS
from wienerkernel.io.store.nodes import Writer
from wienerkernel.law import ray_table as tables
from wienerkernel.law.ray_table import BandTable, RayTable, band_table, ray_table
from wienerkernel.noise import ScipyNoise
from wienerkernel.noise import residuals as of_data
from wienerkernel.noise.characteristic import tabulated
from wienerkernel.noise.characteristic.families import characteristic
from wienerkernel.noise.characteristic.panels import density_panels
from wienerkernel.tuning.blend import shape_grid

T = np.array([0.3, 1.0, 2.5])


class Wide(stats.rv_continuous):
    """Uniform on [0, 1]."""

    def _pdf(self, x):
        return np.ones_like(x)

    def _cdf(self, x):
        return x

    def _ppf(self, q):
        return q


class Ramp(stats.rv_continuous):
    """Density 2 x on [0, 1]."""

    def _pdf(self, x):
        return 2 * x

    def _cdf(self, x):
        return x**2

    def _ppf(self, q):
        return np.sqrt(q)


def wide(name, **keywords):
    return Wide(a=0.0, b=1.0, name=name)(**keywords)


def ramp(name, **keywords):
    return Ramp(a=0.0, b=1.0, name=name)(**keywords)


def ramp_cf(t):
    return 2 * (np.exp(1j * t) * (1 - 1j * t) - 1) / t**2


def uniform_cf(t):
    return np.expm1(1j * t) / (1j * t)


def histogram(counts, edges, **keywords):
    return stats.rv_histogram((np.array(counts), np.array(edges)), density=False)(**keywords)


def table(values, probabilities, **keywords):
    return stats.rv_discrete(values=(values, probabilities))(**keywords)


class TestLawsOfOneNameKeepApart:
    def test_sums_of_two_histograms(self):
        LinearCombination(histogram([1, 9], [0.0, 1.0, 2.0]), np.ones(6)).cdf(9.0)
        even = LinearCombination(histogram([1, 3, 1], [-3.0, -1.0, 1.0, 3.0]), np.ones(6))
        assert float(even.cdf(0.0)) == pytest.approx(0.5, abs=1e-12)

    def test_characteristic_functions_of_two_tables_of_values(self):
        for values in ([0, 1, 5], [0, 2, 3]):
            p = np.array([0.5, 0.25, 0.25])
            expected = np.exp(1j * T[:, None] * np.array(values)) @ p
            np.testing.assert_allclose(np.exp(as_noise(table(values, p)).logcf(T)), expected, rtol=1e-13)

    def test_values_of_a_table_need_not_be_integers(self):
        noise = as_noise(table([0.5, 2.25], [0.25, 0.75], loc=1.0))
        assert noise == Residuals([1.5, 3.25], [0.25, 0.75])

    def test_classes_of_one_name(self):
        first, second = as_noise(wide("law")), as_noise(ramp("law"))
        np.testing.assert_allclose(np.exp(first.logcf(T)), uniform_cf(T), rtol=1e-12)
        np.testing.assert_allclose(np.exp(second.logcf(T)), ramp_cf(T), rtol=1e-12)
        assert first != second
        assert first.cumulants(2) == pytest.approx([1 / 2, 1 / 12])
        assert second.cumulants(2) == pytest.approx([2 / 3, 1 / 18])

    @pytest.mark.parametrize("name", ["norm", "gamma", "expon", "uniform", "beta"])
    def test_a_law_that_bears_the_name_of_another_is_not_taken_for_it(self, name):
        noise = as_noise(ramp(name))
        assert (noise.name, noise.gaussian, noise.costly) == ("", False, True)
        assert noise.cumulants(2) == pytest.approx([2 / 3, 1 / 18])
        np.testing.assert_allclose(np.exp(noise.logcf(T)), ramp_cf(T), rtol=1e-12)
        # M1 + M2 <= 1 has the probability 1/6
        assert float(LinearCombination(noise, [1.0, 1.0]).cdf(1.0)) == pytest.approx(1 / 6, abs=1e-12)
        # the norm of the monic polynomial of degree 2, from the moments 2 / (k + 2)
        assert OrthogonalBasis(noise, 3, normalized=False).norms[2] == pytest.approx(1 / 300)
        assert repr(noise) == f"<{name}()>"

    def test_a_family_that_bears_the_name_of_another_has_bounds_of_its_own(self):
        class Other(stats.rv_continuous):
            def _pdf(self, x, a):
                return a * x ** (a - 1)

        other = Family(Other(a=0.0, b=1.0, name="gamma"))
        assert other.shape_bounds.tolist() != Family("gamma").shape_bounds.tolist()
        assert other != Family("gamma")
        with pytest.raises(TypeError, match="cannot be saved"):
            Writer(RECORDS).node(other, "noise")

    @pytest.mark.parametrize(
        "change",
        [
            {"a": 0.0},
            {"b": 3.0},
            {"badvalue": -1.0},
            {"momtype": 0},
            {"xtol": 1e-3},
        ],
        ids=str,
    )
    def test_a_generator_with_other_parameters_is_another_law(self, change):
        kind = type(stats.norm)
        assert as_noise(kind(name="norm")()).name == "norm"
        frozen = kind(name="norm", **change)()
        noise = as_noise(frozen)
        assert (noise.name, noise.gaussian) == ("", False)
        assert noise == as_noise(kind(name="norm", **change)()) != as_noise("norm()")
        with pytest.raises(TypeError, match="cannot be saved"):
            Writer(RECORDS).node(noise, "noise")

    def test_what_was_assigned_to_a_generator_of_scipy_does_not_count_as_its_own(self, monkeypatch):
        monkeypatch.setattr(stats.halfnorm, "a", 0.5)
        assert as_noise(stats.halfnorm()).name == ""

    def test_replaced_methods_make_another_law(self):
        for part in ("dist", "frozen"):
            frozen = stats.norm()
            target = frozen.dist if part == "dist" else frozen
            target.pdf = lambda x, *_, **__: np.exp(-np.abs(x)) / 2
            assert as_noise(frozen).name == ""
            assert as_noise(frozen) != as_noise(stats.norm())
            assert as_noise(frozen) == as_noise(frozen)

    def test_a_replaced_method_of_a_law_makes_another_law(self):
        one, other = as_noise("norm()"), as_noise("norm()")
        other.logcf = lambda t: -np.abs(t)
        assert one != other


class TestLawsOfUnknownState:
    def test_one_object_is_one_law_and_its_copy_another(self):
        frozen = wide("law", loc=1.0, scale=2.0)
        noise = as_noise(frozen)
        assert noise == as_noise(frozen)
        assert hash(noise) == hash(as_noise(frozen))
        for other in (wide("law", loc=1.0, scale=2.0), copy.deepcopy(frozen)):
            assert noise != as_noise(other)
        assert copy.copy(noise) == noise
        for other in (copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
            assert other != noise
            np.testing.assert_allclose(other.logcf(T), noise.logcf(T), rtol=1e-13)

    def test_state_that_scipy_loses_when_it_freezes_is_kept(self):
        """Moved laws and standard laws are made from the generator that the user gave."""
        frozen = wide("law", loc=3.0, scale=2.0)
        frozen.dist.extra = "kept"
        noise = as_noise(frozen)
        assert noise.standard.frozen.dist.extra == noise.moved(1.0).frozen.dist.extra == "kept"
        assert noise.standard == as_noise(frozen).standard
        assert (noise.standard.loc, noise.moved(1.0).loc, noise.moved(1.0).scale) == (0.0, 1.0, 2.0)

    def test_expansions_of_one_germ_add_and_of_two_do_not(self):
        frozen = wide("germ")
        one, again = (Expansion(OrthogonalBasis(frozen, 2), [0.0, 1.0]) for _ in range(2))
        assert (one + again).coefficients.tolist() == [0.0, 2.0]
        with pytest.raises(ValueError, match="same germ"):
            one + Expansion(OrthogonalBasis(wide("germ"), 2), [0.0, 1.0])

    def test_a_subclass_with_more_state_equals_only_itself(self):
        class Scaled(Residuals):
            def __init__(self, factor):
                super().__init__([0.0, 1.0])
                self.factor = factor

        one, other = Scaled(1.0), Scaled(2.0)
        assert one != other
        assert one == one  # noqa: PLR0124
        assert len({one, other, copy.copy(one)}) == 3


numbers = st.integers(-64_000, 64_000).map(lambda k: k / 64)  # apart by more than their squares can lose
positive = st.floats(0.1, 10.0)
residuals = st.lists(numbers, min_size=2, max_size=6, unique=True).map(Residuals)
leaves = st.one_of(
    st.builds(lambda loc, scale: as_noise(stats.norm(loc, scale)), numbers, positive),
    st.builds(lambda a, loc: as_noise(stats.gamma(a, loc=loc)), positive, numbers),
    st.builds(lambda mu: as_noise(stats.poisson(mu)), positive),
    st.builds(lambda n, m: as_noise(histogram([n, m], [0.0, 1.0, 2.0])), positive, positive),
    st.builds(lambda p: as_noise(table([0, 1], [p, 1 - p])), st.floats(0.1, 0.9)),
    residuals,
    st.builds(SmoothedResiduals, st.lists(numbers, min_size=2, max_size=6, unique=True), bandwidth=positive),
    st.builds(lambda m: Expansion(OrthogonalBasis("norm()", 3), [m, 1.0, 0.5]), numbers),
)
laws = st.recursive(
    leaves,
    lambda part: st.builds(
        lambda components, p: Mixture(components, [p, 1 - p]), st.tuples(part, part), st.floats(0.1, 0.9)
    ),
    max_leaves=3,
)
quick = settings(max_examples=60, deadline=None)


class TestLawsOfKnownData:
    @quick
    @given(laws)
    def test_copies_are_equal(self, law):
        for other in (copy.copy(law), copy.deepcopy(law), pickle.loads(pickle.dumps(law))):
            assert other == law
            assert hash(other) == hash(law)

    @quick
    @given(laws, laws)
    def test_equal_laws_have_equal_hashes_and_equal_characteristic_functions(self, one, other):
        assert (one == other) == (other == one)
        assert len({one, other}) == 2 - (one == other)
        if one == other:
            assert hash(one) == hash(other)
            assert one.support() == other.support()
            np.testing.assert_array_equal(one.logcf(T), other.logcf(T))

    @quick
    @given(st.lists(numbers, min_size=2, max_size=5, unique=True), st.data())
    def test_any_other_residual_or_weight_makes_another_law(self, values, data):
        at = data.draw(st.integers(0, len(values) - 1))
        shifted = values.copy()
        shifted[at] = np.nextafter(max(values), np.inf)
        assert Residuals(values) != Residuals(shifted)
        weights = np.ones(len(values))
        weights[at] += 0.5
        assert Residuals(values) != Residuals(values, weights)
        assert SmoothedResiduals(values, 1.0) != SmoothedResiduals(values, 1.5)
        assert SmoothedResiduals(values, 1.0) == SmoothedResiduals(values[::-1], 1.0)

    def test_zeros_of_either_sign_are_one_number(self):
        for one, other in (
            (stats.norm(0.0, 1.0), stats.norm(-0.0, 1.0)),
            ([0.0, 1.0], [-0.0, 1.0]),
            (Mixture([[-0.0, 1.0], [0.0, 2.0]], [1, 1]), Mixture([[0.0, 1.0], [-0.0, 2.0]], [1, 1])),
        ):
            assert as_noise(one) == as_noise(other)
            assert hash(as_noise(one)) == hash(as_noise(other))

    def test_infinite_shapes_and_parameters_that_are_nan_are_compared(self):
        one, again = (as_noise(stats.truncnorm(-1.0, np.inf)) for _ in range(2))
        assert one == again != as_noise(stats.truncnorm(-1.0, 30.0))
        bad, same = (ScipyNoise(stats.norm(np.nan, 1.0)) for _ in range(2))
        assert bad == same
        assert hash(bad) == hash(same)

    def test_histograms_are_equal_by_bins_and_counts(self):
        one = as_noise(histogram([1, 2], [0.0, 1.0, 2.0], loc=1.0))
        assert one == as_noise(histogram([1, 2], [0.0, 1.0, 2.0], loc=1.0))
        assert one != as_noise(histogram([1, 2], [0.0, 1.0, 2.5], loc=1.0))
        assert one != as_noise(histogram([2, 1], [0.0, 1.0, 2.0], loc=1.0))
        assert one != as_noise(histogram([1, 2], [0.0, 1.0, 2.0], loc=1.5))

    def test_families_are_equal_after_pickling(self):
        family = Family("gamma", bounds={"a": (0.5, 2.0)})
        again = pickle.loads(pickle.dumps(family))
        assert again == family
        assert hash(again) == hash(family)
        assert shape_grid(again) is shape_grid(family)

    def test_a_copy_that_is_changed_before_its_use_is_another_law(self):
        one = Residuals([0.0, 1.0])
        hash(one)
        other = copy.copy(one)
        other.values = np.array([0.0, 2.0])
        assert one != other

    def test_data_of_a_law_cannot_be_changed_in_place(self):
        for array in (Residuals([0.0, 1.0]).values, Mixture(["norm()", [0.0, 1.0]], [1, 1]).weights):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5.0

    def test_data_are_read_once(self, monkeypatch):
        read = []
        digest = of_data.digest
        monkeypatch.setattr(of_data, "digest", lambda *arrays: read.append(1) or digest(*arrays))
        noise = Residuals(np.arange(10.0))
        assert len({hash(noise) for _ in range(5)}) == 1
        assert noise == Residuals(np.arange(10.0))
        assert len(read) == 2


class TestCaches:
    def test_equal_laws_share_their_tables_and_others_do_not(self):
        values = np.random.default_rng(0).normal(size=500)
        one, again, other = Residuals(values), Residuals(values[::-1]), Residuals(2 * values)
        assert band_table(one) is band_table(again) is not band_table(other)
        assert ray_table(one, 0.0, 1e-3) is ray_table(again, 0.0, 1e-3) is not ray_table(other, 0.0, 1e-3)
        first, second = as_noise(histogram([1, 2], [0.0, 1.0, 2.0])), as_noise(histogram([2, 1], [0, 1, 2.0]))
        assert characteristic(first) is not characteristic(second)
        assert characteristic(first) is characteristic(pickle.loads(pickle.dumps(first)))

    def test_recurrence_coefficients_are_those_of_the_law(self):
        for frozen, variance in ((wide("law"), 1 / 12), (ramp("law"), 1 / 18)):
            assert OrthogonalBasis(frozen, 4).beta[1] == pytest.approx(variance)

    def test_characteristic_functions_of_expansions_are_those_of_the_law(self):
        for germ, cf in ((wide("law"), uniform_cf), (ramp("law"), ramp_cf)):
            noise = as_noise(germ)
            same = Expansion(OrthogonalBasis(germ, 3), [noise.mean(), noise.std(), 0.0])
            np.testing.assert_allclose(np.exp(same.logcf(T)), cf(T), rtol=1e-11)


class Waiting:
    """A function that waits at its first call until it is told to go on, or until it is clear that no one will."""

    __array_ufunc__ = None  # so that `array @ waiting` comes here

    def __init__(self, function):
        self.function = function
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self, *args):
        if not self.reached.is_set():
            self.reached.set()
            self.go.wait(0.5)
        return self.function(*args)

    __rmatmul__ = __call__


def interleaved(waiting, first, second):
    """Run ``first`` up to its wait, then all of ``second`` if it can, then the rest of ``first``; both results."""
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        waiting.reached.wait(10)
        two = pool.submit(second)
        two.add_done_callback(lambda _: waiting.go.set())
        return one.result(), two.result()


class TestThreads:
    def test_a_ray_table_that_grows_in_two_threads_stays_whole(self):
        noise = as_noise("gamma(2.0)")
        table = RayTable(noise, 0.2, 1e-13)
        table.noise = copy.copy(noise)
        table.noise.logcf = waiting = Waiting(noise.logcf)

        def check(log_r):
            table.cover(log_r, log_r)
            expected = noise.logcf(np.exp(np.array([log_r]) - 0.2j))
            np.testing.assert_allclose(np.exp(table(np.array([log_r]))[0]), np.exp(expected), rtol=1e-11)

        interleaved(waiting, lambda: check(-9.0), lambda: check(9.0))
        for log_r in (-12.0, -9.0, 9.0, 12.0):
            check(log_r)

    def test_a_band_table_that_another_thread_replaces_is_read_to_the_end(self, monkeypatch):
        noise = Residuals([-1.0, 0.5, 2.0])
        table = BandTable(noise)
        table.noise = copy.copy(noise)
        table.noise.logcf = waiting = Waiting(noise.logcf)
        replaced, stencil = threading.Event(), tables.stencil

        def short():
            table.logcf(np.array([1.0]))
            replaced.set()

        def patient(position):
            if position.max() > 100:  # the long table has been made: let the short one take its place
                waiting.go.set()
                replaced.wait(10)
            return stencil(position)

        monkeypatch.setattr(tables, "stencil", patient)
        _, got = interleaved(waiting, short, lambda: table.logcf(np.array([50.0])))
        np.testing.assert_allclose(np.exp(got), np.exp(noise.logcf([50.0])), atol=1e-12)

    def test_a_tabulated_function_is_not_read_before_it_is_written(self, monkeypatch):
        powers = tabulated._TO_POWERS
        waiting = Waiting(lambda series: series @ powers)
        monkeypatch.setattr(tabulated, "_TO_POWERS", waiting)
        logcf = tabulated.tabulated(lambda t: -np.log(1 - 1j * t))
        t = np.linspace(0.1, 10.0, 100) + 0j
        for got in interleaved(waiting, lambda: logcf(t), lambda: logcf(t)):
            np.testing.assert_allclose(got, -np.log(1 - 1j * t), rtol=1e-13)

    def test_cells_built_while_another_thread_reads_are_not_taken_for_known(self, monkeypatch):
        """What another thread does between two steps of a reader is done there by the reader itself."""
        logcf = tabulated.tabulated(lambda t: -np.log(1 - 1j * t))
        t = np.geomspace(0.1, 10.0, 100) + 0j
        meanwhile = [*range(20)]  # enough for every cell to be worth a polynomial

        def where(*args):
            # the reader has its polynomials and multiplies them by a power of t
            while meanwhile and np.array_equal(args[2], 1.0):
                meanwhile.pop()
                logcf(t)
            return np.where(*args)

        class Interrupted:
            def __getattr__(self, name):
                return where if name == "where" else getattr(np, name)

        values = logcf(t)
        monkeypatch.setattr(tabulated, "np", Interrupted())
        np.testing.assert_allclose(logcf(t), values, rtol=1e-13)

    def test_cumulants_that_are_integrals_keep_their_order(self):
        noise = as_noise("johnsonsu(1.0, 4.0)")
        expected = as_noise("johnsonsu(1.0, 4.0)").cumulants(8)
        noise._central_moment = waiting = Waiting(noise._central_moment)
        interleaved(waiting, lambda: noise.cumulants(6), lambda: noise.cumulants(6))
        np.testing.assert_allclose(noise.cumulants(8), expected, rtol=1e-12)

    def test_warnings_are_silenced_for_no_longer_than_a_density_is_looked_at(self):
        """The filter of warnings belongs to all threads, so that only one at a time may change it."""
        inside, left = threading.Event(), threading.Event()

        def panels(before, wait):
            law = stats.norm()
            isf = law.isf
            law.isf = lambda q: (before(), wait.wait(0.5), isf(q))[2]
            density_panels(law)

        filters = warnings.filters.copy()
        with ThreadPoolExecutor(2) as pool:
            entered = threading.Event()
            first = pool.submit(panels, entered.set, inside)
            entered.wait(10)
            second = pool.submit(panels, inside.set, left)
            first.result()
            left.set()
            second.result()
        assert warnings.filters == filters

    def test_each_thread_tunes_with_tables_of_its_own(self):
        family = Family("t")
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(shape_grid, family).result()
        assert shape_grid(family) is shape_grid(family) is not other

    def test_four_threads_find_what_one_finds(self):
        histograms = [histogram([1, k, 2], [0.0, 1.0, 2.0, 3.0]) for k in range(1, 5)]
        weights = np.linspace(0.2, 1.0, 6)

        def cdf(frozen):
            Y = LinearCombination(frozen, weights)
            return Y.cdf(Y.mean() + Y.std() * np.linspace(-2, 2, 7))

        characteristic.cache_clear()
        ray_table.cache_clear()
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(cdf, histograms * 4))
        characteristic.cache_clear()
        ray_table.cache_clear()
        alone = [cdf(frozen) for frozen in histograms] * 4
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
