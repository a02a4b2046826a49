// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/behaviour"
)

// Report is the result of a probe. It does not identify the subscription.
type Report struct {
	Behaviour behaviour.Behaviour `json:"behaviour"`
	Version   string              `json:"version"`
	When      time.Time           `json:"when"`
	Cloud     string              `json:"cloud"`
	Location  string              `json:"location"`
	// Requests excludes polls.
	Requests  int       `json:"requests"`
	Questions []Finding `json:"questions"`
	Latencies []Latency `json:"latencies"`
}

// Finding is a question with its observations.
type Finding struct {
	Name    string           `json:"name"`
	Asks    string           `json:"asks"`
	Assumed behaviour.Answer `json:"assumed"`
	// Answer is empty for an open question, Why otherwise.
	Answer behaviour.Answer `json:"answer,omitempty"`
	Why    string           `json:"why,omitempty"`
	Seen   []Seen           `json:"seen,omitempty"`
}

// Seen is one observation.
type Seen struct {
	Did    string   `json:"did"`
	Status int      `json:"status"`
	Codes  []string `json:"codes,omitempty"`
	Ended  string   `json:"ended,omitempty"`
	Saw    string   `json:"saw,omitempty"`
}

// Open counts the questions without an answer.
func (r Report) Open() int {
	n := 0
	for _, f := range r.Questions {
		if f.Answer == "" {
			n++
		}
	}
	return n
}

func (r *run) report() Report {
	result := Report{
		Version: r.Version, When: r.began.UTC().Truncate(time.Second), Cloud: r.Cloud, Location: r.Location,
		Requests: int(r.calls.Load()), Latencies: latencies(r.samples),
	}
	for _, q := range behaviour.Questions() {
		f := *r.findings[q.Name]
		if f.Answer == "" && f.Why == "" {
			f.Why = "the run ended before"
		}
		f.Why = r.clean(f.Why)
		f.Seen = slices.Clone(f.Seen)
		for i := range f.Seen {
			f.Seen[i].Saw = r.clean(f.Seen[i].Saw)
		}
		if next, err := result.Behaviour.With(f.Name, f.Answer); err == nil {
			result.Behaviour = next
		}
		result.Questions = append(result.Questions, f)
	}
	return result
}

func (r *run) clean(text string) string { return line(Redact(text, r.secrets()...)) }

// JSON encodes the report.
func (r Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return append(text, '\n'), nil
}

// MaxReport limits a report that is read, in bytes.
const MaxReport = 1 << 20

// Parse decodes a report; only the behavior is required.
func Parse(text []byte) (Report, error) {
	var r Report
	if len(text) > MaxReport {
		return r, fmt.Errorf("larger than %d bytes, which no report is", MaxReport)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var keys map[string]json.RawMessage
	if err := dec.Decode(&keys); err != nil {
		return r, fmt.Errorf("want a JSON object, as weir probe-azure --out writes it: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("more follows after the JSON object")
	}
	fields := map[string]any{
		"behaviour": &r.Behaviour, "version": &r.Version, "when": &r.When, "cloud": &r.Cloud, "location": &r.Location,
		"requests": &r.Requests, "questions": &r.Questions, "latencies": &r.Latencies,
	}
	if keys["behaviour"] == nil {
		return r, errors.New(`the key "behaviour" is missing`)
	}
	for key, value := range keys {
		field, known := fields[key]
		if !known {
			return Report{}, fmt.Errorf("the key %q is unknown: use %s", line(key), strings.Join(sorted(fields), ", "))
		}
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.DisallowUnknownFields()
		if err := dec.Decode(field); err != nil {
			return Report{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	return r, nil
}

func sorted(fields map[string]any) []string {
	var all []string
	for key := range fields {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}
