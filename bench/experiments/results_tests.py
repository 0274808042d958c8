"""bench/results.py --self-test: made-up results in a folder of their own, and what the page and the figures make of them."""
import io, json, os, sys, tempfile, unittest
import xml.etree.ElementTree as xml

import results as page
from . import rows, svg

SVG = "{http://www.w3.org/2000/svg}"


def made_up(row, seed, best, **more):
    true = row.is_true(seed)
    return {"row": row.name, "seed": seed, "precision": row.precision, "nonzero": row.nonzero, "microbatch": row.microbatch, "statistics_group": None if true else row.microbatch,
            "true_microbatch": true, "checkpoint": "none", "budget": row.budget or None if true else None, "batch": 100, "learning_rate": row.rate, "planned_peak_bytes": 6_595_200,
            "measured_peak_bytes": 6_595_200, "epochs": 0 if row.steps else row.epochs, "best_test_accuracy": best, "last_test_accuracy": best - 0.001, "images_per_second": 1000.0,
            "device": "made up", "commit": "c", "seconds": 60.0, "jobs_at_once": 1, "flops_ratio": 1.25} | more


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.at = lambda *names: os.path.join(holder.name, *names)
        os.makedirs(self.at("results"))
        os.makedirs(self.at("images"))
        with open(self.at("page.md"), "w") as file:
            file.write("# Prose\n" + "".join(f"before {name}\n<!-- {name}:begin -->\nold\n<!-- {name}:end -->\nafter {name}\n" for name in page.SECTIONS))

    def add(self, result, name=""):
        with open(self.at("results", name or f"{result['row']}-seed{result['seed']}.json"), "w") as file:
            json.dump(result, file)

    def run_page(self, *arguments):
        out, error, sys.stdout, sys.stderr = sys.stdout, sys.stderr, io.StringIO(), io.StringIO()
        try:
            code = page.main(["--results", self.at("results"), "--page", self.at("page.md"), "--images", self.at("images"), *arguments])
            return code, sys.stderr.getvalue()
        finally:
            sys.stdout, sys.stderr = out, error

    def text(self, section):
        with open(self.at("page.md")) as file:
            whole = file.read()
        return whole.split(f"<!-- {section}:begin -->\n")[1].split(f"<!-- {section}:end -->")[0]


class Page(Folder):
    def test_EveryExperimentFillsItsSectionAndFigure(self):
        for row, seed in rows.order_of_work(list(rows.EXPERIMENTS)):
            size = int(4e8 * row.nonzero * row.microbatch / 100)
            self.add(made_up(row, seed, 0.9 + 0.04 * row.nonzero + 0.001 * seed, measured_peak_bytes=size))
        self.assertEqual(self.run_page(), (0, ""))
        for section in page.SECTIONS:
            self.assertIn("|---|", self.text(section), section)
            self.assertNotIn("No results", self.text(section), section)
        figures = sorted(os.listdir(self.at("images")))
        self.assertEqual(figures, [f"results_{name}.svg" for name in ("checkpointing", "combined", "microbatch", "smaller", "sparsity")])
        for name in figures:
            self.assertEqual(xml.parse(self.at("images", name)).getroot().tag, SVG + "svg")
        self.assertEqual(self.run_page("--check"), (0, ""))

    def test_RowOfTable3ShowsMeansIntervalsSeedsAndBytes(self):
        row = rows.rows_by_name()["fp16-30-10"]
        for seed, best in enumerate((0.9400, 0.9420, 0.9410)):
            self.add(made_up(row, seed, best))
        self.run_page()
        # Deviation 0.1, times 4.303, over the root of 3.
        self.assertIn("| 30%, 10 | 6.7 MB | 6,595,200 | 93.95 ± 0.18 | 94.10 ± 0.25 | 94.00 ± 0.25 | 3, 2 simulated | 94.00 in 6,595,200 |", self.text("table3"))
        self.assertIn("| 20%, 4 | 3.6 MB |  | 93.08 ± 0.15 |  |  |  |  |", self.text("table3"))

    def test_FinishedRowsOfTable3StandBesideTheReportsInTheFigure(self):
        self.add(made_up(rows.rows_by_name()["fp16-30-10"], 0, 0.94))
        self.run_page()
        names = [text.text for text in xml.parse(self.at("images", "results_combined.svg")).getroot().iter(SVG + "text")]
        self.assertIn("Table 3, 200 epochs", names)
        self.assertIn("the report's Table 3", names)

    def test_ProseStaysAndOnlySectionsChange(self):
        self.run_page()
        with open(self.at("page.md")) as file:
            whole = file.read()
        for name in page.SECTIONS:
            self.assertIn(f"before {name}\n<!-- {name}:begin -->", whole)
            self.assertIn(f"<!-- {name}:end -->\nafter {name}\n", whole)
        self.assertNotIn("\nold\n", whole)

    def test_CheckFailsOnAnOldPageAnOldFigureAndOneTooMany(self):
        self.assertEqual(self.run_page("--check")[0], 1)
        self.add(made_up(rows.EXPERIMENTS["figure4"][0], 0, 0.9))
        self.add(made_up(rows.EXPERIMENTS["figure4"][3], 0, 0.91))
        self.run_page()
        self.assertEqual(self.run_page("--check")[0], 0)
        with open(self.at("images", "results_microbatch.svg"), "a") as file:
            file.write(" ")
        self.assertEqual(self.run_page("--check")[0], 1)
        self.run_page()
        with open(self.at("images", "results_left_over.svg"), "w") as file:
            file.write("<svg/>")
        self.assertEqual(self.run_page("--check")[0], 1)
        self.run_page()
        self.assertFalse(os.path.exists(self.at("images", "results_left_over.svg")))

    def test_FileThatIsNotItsRowIsRefused(self):
        row = rows.rows_by_name()["fp16-20-4"]
        for wrong, sentence in (({"epochs": 3}, "epochs is 3"), ({"row": "x"}, "no row 'x'"), ({"seed": 2}, "its name should say so"), ({"learning_rate": 0.3}, "one row has one rate")):
            self.add(made_up(row, 0, 0.9))
            self.add(made_up(row, 1, 0.9) | wrong, "fp16-20-4-seed1.json")
            code, said = self.run_page("--check")
            self.assertEqual(code, 2)
            self.assertIn(sentence, said)
        self.add({"row": row.name}, "fp16-20-4-seed1.json")
        self.assertIn("has no seed, precision", self.run_page()[1])

    def test_MissingMarkerIsRefused(self):
        with open(self.at("page.md"), "w") as file:
            file.write("nothing\n")
        self.assertEqual(self.run_page()[0], 2)


class Statistics(unittest.TestCase):
    def test_IntervalIsStudents(self):
        mean, half = page.mean_and_half([1, 2, 3, 4, 5])
        self.assertAlmostEqual(mean, 3)
        self.assertAlmostEqual(half, 2.776 * 1.5811388 / 2.2360680, places=5)
        self.assertEqual(page.mean_and_half([7]), (7, None))

    def test_EqualValuesHaveNoWidth(self):
        self.assertEqual(page.written(*page.mean_and_half([94.0, 94.0])), "94.00 ± 0.00")


class Chart(unittest.TestCase):
    def test_PointsLieInThePlotInOrder(self):
        root = xml.fromstring(svg.chart("a < b & \"c\"", "x", "y", [{"name": "one & two", "points": [(1, 90, 0.5), (10, 92, None), (100, 94, 0.1)]}], log_x=True))
        circles = [(float(circle.get("cx")), float(circle.get("cy"))) for circle in root.iter(SVG + "circle")][:3]
        self.assertEqual(circles, sorted(circles))
        self.assertAlmostEqual(circles[1][0] - circles[0][0], circles[2][0] - circles[1][0], delta=0.2)
        self.assertGreater(circles[0][1], circles[2][1])
        for x, y in circles:
            self.assertTrue(svg.LEFT <= x <= svg.WIDTH - svg.RIGHT and svg.TOP <= y <= svg.HEIGHT - svg.BOTTOM)
        self.assertIn("one & two", [text.text for text in root.iter(SVG + "text")])

    def test_SinglePointHasAxes(self):
        root = xml.fromstring(svg.chart("t", "x", "y", [{"name": "n", "points": [(5, 90, None)]}]))
        self.assertGreaterEqual(len(list(root.iter(SVG + "line"))), 4)

    def test_TicksAreRoundNumbersInside(self):
        self.assertEqual(svg.ticks_of(91.6, 94.6), [92.0, 92.5, 93.0, 93.5, 94.0, 94.5])
        self.assertEqual(svg.log_ticks(2, 60), [2.0, 5.0, 10.0, 20.0, 50.0])
        self.assertEqual(svg.log_ticks(2.5, 8.5), [3.0, 4.0, 5.0, 6.0, 8.0])
