// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"go.yaml.in/yaml/v3"
)

var promQL = parser.NewParser(parser.Options{})

// loadRules returns the rules of config/prometheus, parsed by Prometheus.
func loadRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	data, err := os.ReadFile("../../config/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Spec yaml.Node }
	if err := yaml.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(&object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(spec, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) < 10 {
		t.Fatalf("only %d rules: are they still found?", len(rules))
	}
	return rules
}

// prometheus is an in-memory Prometheus with one sample per minute.
type prometheus struct {
	t      *testing.T
	engine *promql.Engine
	series map[string]*series
	since  map[string]time.Time // when the expression became true, by alert
}

type series struct {
	labels  labels.Labels
	samples samples
}

func newPrometheus(t *testing.T) *prometheus {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: 10 * time.Minute, Parser: promQL})
	t.Cleanup(func() { _ = engine.Close() })
	return &prometheus{t: t, engine: engine, series: map[string]*series{}, since: map[string]time.Time{}}
}

func (p *prometheus) add(l labels.Labels, at time.Time, value float64) {
	s := p.series[l.String()]
	if s == nil {
		s = &series{labels: l}
		p.series[l.String()] = s
	}
	s.samples = append(s.samples, sample{at.UnixMilli(), value})
}

func (p *prometheus) query(expr string, at time.Time) promql.Vector {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p, nil, expr, at)
	if err != nil {
		p.t.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	var out promql.Vector
	return append(out, v...)
}

// evaluate runs the rules at a point in time and returns the firing alerts.
func (p *prometheus) evaluate(rules []rulefmt.Rule, at time.Time) map[string]bool {
	firing := map[string]bool{}
	for _, r := range rules {
		result := p.query(r.Expr, at)
		switch {
		case r.Record != "":
			for _, s := range result {
				p.add(labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.Record).Labels(), at, s.F)
			}
		case len(result) == 0:
			delete(p.since, r.Alert)
		default:
			if _, held := p.since[r.Alert]; !held {
				p.since[r.Alert] = at
			}
			firing[r.Alert] = at.Sub(p.since[r.Alert]) >= time.Duration(r.For)
		}
	}
	return firing
}

// Querier implements storage.Queryable.
func (p *prometheus) Querier(from, to int64) (storage.Querier, error) {
	return querier{p, from, to}, nil
}

type querier struct {
	of       *prometheus
	from, to int64
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, match ...*labels.Matcher) storage.SeriesSet {
	found := &set{}
all:
	for _, s := range q.of.series {
		for _, m := range match {
			if !m.Matches(s.labels.Get(m.Name)) {
				continue all
			}
		}
		var within samples
		for _, x := range s.samples {
			if x.T() >= q.from && x.T() <= q.to {
				within = append(within, x)
			}
		}
		found.series = append(found.series, storage.NewListSeries(s.labels, within))
	}
	return found
}

// LabelValues implements storage.Querier.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

type set struct {
	series []storage.Series
	at     storage.Series
}

// Next implements storage.SeriesSet.
func (s *set) Next() bool {
	if len(s.series) == 0 {
		return false
	}
	s.at, s.series = s.series[0], s.series[1:]
	return true
}

// At implements storage.SeriesSet.
func (s *set) At() storage.Series { return s.at }

// Err implements storage.SeriesSet.
func (*set) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (*set) Warnings() annotations.Annotations { return nil }

type samples []chunks.Sample

type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                    { return s.t }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.f }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
