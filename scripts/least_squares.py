"""Linear least squares for the scripts that take published times apart. Standard library only."""


def solve(matrix, right):
    """Gauss with pivots; unknowns that no equation holds are 0."""
    n = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    largest = max(abs(row[i]) for i, row in enumerate(rows))
    pivots = []
    for column in range(n):
        begin = len(pivots)
        best = max(range(begin, n), key=lambda r: abs(rows[r][column]))
        if abs(rows[best][column]) < 1e-11 * largest:
            continue
        rows[begin], rows[best] = rows[best], rows[begin]
        for r in range(n):
            factor = rows[r][column] / rows[begin][column] if r != begin else 0.0
            if factor:
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[begin])]
        pivots.append(column)
    answer = [0.0] * n
    for r, column in enumerate(pivots):
        answer[column] = rows[r][n] / rows[r][column]
    return answer


def least_squares(equations, values, scales=None):
    """Equations are sparse: {unknown: coefficient}. Errors count relative to `scales`, without which to the values."""
    names = sorted({name for equation in equations for name in equation}, key=repr)
    index = {name: i for i, name in enumerate(names)}
    normal, right = [[0.0] * len(names) for _ in names], [0.0] * len(names)
    for equation, value, scale in zip(equations, values, scales or values):
        for a, x in equation.items():
            right[index[a]] += x * value / scale**2
            for b, y in equation.items():
                normal[index[a]][index[b]] += x * y / scale**2
    return dict(zip(names, solve(normal, right)))
