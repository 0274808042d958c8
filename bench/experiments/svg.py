"""Charts as SVG, written by hand: lines with markers and 95% intervals, readable on light and dark pages, no library needed."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 40, 55  # around the plot; the legend is on the right
# Chosen to be told apart by people who see few colors, too; the second of each is for dark pages.
COLORS = [("#0072b2", "#56b4e9"), ("#d55e00", "#ff8c42"), ("#009e73", "#3ddbb0"), ("#a8528a", "#e29bc8"), ("#8a6d00", "#f0e442"), ("#555555", "#bbbbbb"),
          ("#7a1fa2", "#c792ea"), ("#000000", "#ffffff")]


def style():
    light = "".join(f".s{i}{{stroke:{light};fill:{light}}}" for i, (light, _) in enumerate(COLORS))
    dark = "".join(f".s{i}{{stroke:{dark};fill:{dark}}}" for i, (_, dark) in enumerate(COLORS))
    return ("text{font:13px sans-serif;fill:#222;stroke:none}.grid{stroke:#ddd}.axis{stroke:#666}polyline{fill:none;stroke-width:2}.bar{stroke-width:1.5}" + light +
            "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}.axis{stroke:#999}" + dark + "}polyline{fill:none!important}")


def nice_step(span, most=7):
    """1, 2 or 5 times a power of ten: at most so many ticks over the span."""
    power = 10 ** math.floor(math.log10(span / most))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * most >= span * 0.999999)


def ticks_of(low, high):
    step = nice_step(high - low)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low, high):
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 2, 3, 4, 5, 6, 8)):  # the second where the first would leave too few
        ticks = [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]
        if len(ticks) > 2:
            break
    return ticks


def coordinate(value):
    return f"{value:.1f}"


class Scale:
    def __init__(self, values, begin, end, log=False):
        low, high = min(values), max(values)
        self.log = log
        if log:
            low, high = low / 1.15, high * 1.15
        else:
            margin = 0.06 * (high - low) or 0.5
            low, high = low - margin, high + margin
        self.ticks = log_ticks(low, high) if log else ticks_of(low, high)
        self.low, self.high, self.begin, self.end = low, high, begin, end

    def __call__(self, value):
        position = lambda v: math.log(v) if self.log else v
        share = (position(value) - position(self.low)) / (position(self.high) - position(self.low))
        return self.begin + share * (self.end - self.begin)


def marker(shape, x, y, color):
    if shape == "diamond":
        points = " ".join(f"{coordinate(x + dx)},{coordinate(y + dy)}" for dx, dy in ((0, -6), (6, 0), (0, 6), (-6, 0)))
        return f'<polygon class="s{color}" points="{points}"/>'
    return f'<circle class="s{color}" cx="{coordinate(x)}" cy="{coordinate(y)}" r="4"/>'


def chart(title, x_label, y_label, series, log_x=False):
    """`series`: [{"name", "points": [(x, y, half of the interval or None)], "line": bool, "marker": "circle" or "diamond"}]."""
    points = [point for one in series for point in one["points"]]
    x_of = Scale([x for x, _, _ in points], LEFT, WIDTH - RIGHT, log_x)
    y_of = Scale([y + sign * (half or 0) for _, y, half in points for sign in (-1, 1)], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">', f"<style>{style()}</style>",
           f'<text x="{LEFT}" y="22" font-weight="bold">{escape(title)}</text>']
    for tick in x_of.ticks:
        x = coordinate(x_of(tick))
        out += [f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}"/>', f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>']
    for tick in y_of.ticks:
        y = y_of(tick)
        out += [f'<line class="grid" x1="{LEFT}" y1="{coordinate(y)}" x2="{WIDTH - RIGHT}" y2="{coordinate(y)}"/>', f'<text x="{LEFT - 8}" y="{coordinate(y + 4)}" text-anchor="end">{tick:g}</text>']
    out += [f'<line class="axis" x1="{LEFT}" y1="{HEIGHT - BOTTOM}" x2="{WIDTH - RIGHT}" y2="{HEIGHT - BOTTOM}"/>', f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{HEIGHT - BOTTOM}"/>',
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x_label)}</text>',
            f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>']
    for number, one in enumerate(series):
        color = number % len(COLORS)
        if one.get("line", True) and len(one["points"]) > 1:
            line = " ".join(f"{coordinate(x_of(x))},{coordinate(y_of(y))}" for x, y, _ in sorted(one["points"], key=lambda point: point[0]))
            out.append(f'<polyline class="s{color}" points="{line}"/>')
        for x, y, half in one["points"]:
            if half:
                out.append(f'<line class="s{color} bar" x1="{coordinate(x_of(x))}" y1="{coordinate(y_of(y - half))}" x2="{coordinate(x_of(x))}" y2="{coordinate(y_of(y + half))}"/>')
            out.append(marker(one.get("marker"), x_of(x), y_of(y), color))
        y = TOP + 14 + 22 * number
        out += [marker(one.get("marker"), WIDTH - RIGHT + 20, y - 4, color), f'<text x="{WIDTH - RIGHT + 32}" y="{y}">{escape(one["name"])}</text>']
    return "\n".join(out + ["</svg>"]) + "\n"
