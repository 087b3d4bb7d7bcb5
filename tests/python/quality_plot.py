"""The plot of `quality.py`: recall and precision of the recipes against the distance, as SVG."""

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 30, 40
COLOURS = ["#d1495b", "#1f6f8b", "#4a97b4", "#b8763a", "#6c8a55", "#7a6299", "#b45668", "#8a8578", "#3f8f84"]
COLOURS += ["#333333"]


def place(distance, share):
    """Where a share at a distance is drawn."""
    x = LEFT + distance / 10 * (WIDTH - LEFT - RIGHT)
    return x, HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def panel(title, share, average, recipes):
    """One plot: a line a recipe."""
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{title}</text>']
    for step in range(6):
        _, y = place(0, step / 5)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{step / 5:.1f}</text>')
    for distance in range(11):
        x, y = place(distance, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{distance}</text>')
    for recipe, colour in zip(recipes, COLOURS[: len(recipes)], strict=True):
        values = [(distance, average[recipe, distance][share]) for distance in range(11)]
        points = [place(distance, value) for distance, value in values if value is not None]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return "".join(parts)


def legend(recipes):
    """The colours of the recipes."""
    parts = []
    for number, (recipe, colour) in enumerate(zip(recipes, COLOURS[: len(recipes)], strict=True)):
        y = TOP + 10 + 20 * number
        parts.append(f'<line x1="0" x2="20" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="26" y="{y + 4}">{recipe}</text>')
    return "".join(parts)


def plot(average):
    """Both panels and the legend."""
    recipes = list(dict.fromkeys(recipe for recipe, _ in average))
    panels = [
        panel("Recall by distance", "recall", average, recipes),
        panel("Precision by distance", "precision", average, recipes),
        legend(recipes),
    ]
    width = 2 * WIDTH + 190
    groups = "\n".join(
        f'<g transform="translate({number * WIDTH + (10 if number == 2 else 0)} 0)">{part}</g>'
        for number, part in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>\n{groups}\n</svg>\n'
    )
