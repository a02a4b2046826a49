// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// documentedSeries returns the series and labels of docs/reference/metrics.md; a test of internal/observe/metrics
// compares that page with the registered metrics.
func documentedSeries(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	series := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)(?:\\{([a-z_,]+)\\})?` \\| (gauge|counter|histogram) ").FindAllStringSubmatch(string(page), -1) {
		var of []string
		if m[2] != "" {
			of = strings.Split(m[2], ",")
		}
		if strings.HasPrefix(m[1], "cloudprovider_") {
			of = []string{"request", "resource_group", "subscription_id", "source"}
		}
		if m[3] == "histogram" {
			series[m[1]+"_bucket"], series[m[1]+"_count"], series[m[1]+"_sum"] = append(slices.Clone(of), "le"), of, of
			continue
		}
		series[m[1]] = of
	}
	if len(series) < 30 {
		t.Fatalf("only %d series: is the table still found?", len(series))
	}
	return series
}

// scrapeLabels are labels added by Prometheus.
var scrapeLabels = []string{"pod", "job", "instance"}

// unknownSeries returns the series and labels of an expression that are not in known.
func unknownSeries(t *testing.T, expr string, known map[string][]string) (wrong []string) {
	t.Helper()
	parsed, err := promQL.ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	var of, grouped []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			if _, current := known[n.Name]; !current {
				wrong = append(wrong, "no series "+n.Name)
				return nil
			}
			of = append(of, known[n.Name]...)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(append(known[n.Name], scrapeLabels...), m.Name) {
					wrong = append(wrong, n.Name+" has no label "+m.Name)
				}
			}
		case *parser.AggregateExpr:
			grouped = append(grouped, n.Grouping...)
		}
		return nil
	})
	for _, label := range grouped {
		if !slices.Contains(append(of, scrapeLabels...), label) {
			wrong = append(wrong, "grouped by "+label+", which none of its series has")
		}
	}
	return wrong
}

func TestRulesAskForSeriesThatAreThere(t *testing.T) {
	known := documentedSeries(t)
	rules := loadRules(t)
	for _, r := range rules {
		if r.Record != "" {
			known[r.Record] = nil
		}
	}
	for _, r := range rules {
		for _, w := range unknownSeries(t, r.Expr, known) {
			t.Errorf("%s%s: %s", r.Alert, r.Record, w)
		}
	}
	for _, bad := range []string{"weir_up", "sum by (pool) (weir_services)", `weir_services{kind="x"}`, "sum("} {
		if len(unknownSeries(t, bad, known)) == 0 {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestTheDashboardAsksForSeriesThatAreThere(t *testing.T) {
	data, err := os.ReadFile("../../config/grafana/weir.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	known, requested := documentedSeries(t), 0
	for _, r := range loadRules(t) {
		known[r.Record] = nil
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			requested++
			for _, w := range unknownSeries(t, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"), known) {
				t.Errorf("%s: %s", p.Title, w)
			}
		}
	}
	if requested < 10 {
		t.Errorf("only %d queries: are they still found?", requested)
	}
}
