"""Student's t without scipy: distribution function and quantile. Degrees of freedom may be fractions."""

import math
from functools import lru_cache

_TINY = 1e-300
_PRECISION = 1e-14
_MOST_STEPS = 500
_MOST_TERMS = 100  # degrees of freedom up to which the finite sum is used
_CANCELLED = 1e-6  # smaller tails lose too many digits in that sum


def t_cdf(t: float, freedom: float) -> float:
    """P(T ≤ t). Infinite arguments are allowed."""
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    tail = _upper_tail(abs(t), freedom)
    return 1 - tail if t > 0 else tail


def _upper_tail(t: float, freedom: float) -> float:
    """P(T > t) for t ≥ 0."""
    if freedom == int(freedom) and freedom <= _MOST_TERMS:
        tail = _upper_tail_of_whole(t, int(freedom))
        if tail > _CANCELLED:
            return tail
    return 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _upper_tail_of_whole(t: float, freedom: int) -> float:
    """Upper tail as a finite sum, 50 times as fast (Abramowitz and Stegun 26.7.3-4); small ones cancel."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for factor in range(2 if odd else 1, freedom - 2, 2):
        term *= factor / (factor + 1) * cosine**2
        total += term
    inside = math.sin(angle) * total
    if odd:
        inside = (angle + inside) * 2 / math.pi
    return (1 - inside) / 2


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """The t with P(T ≤ t) = probability, which must be strictly between 0 and 1."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < probability:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised I_x(a, b) by Lentz's continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0:
        return 0.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MOST_STEPS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away_from_zero(1 + factor * d)
            c = _away_from_zero(1 + factor / c)
            fraction *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
