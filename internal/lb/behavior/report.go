// SPDX-License-Identifier: Apache-2.0

package behavior

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// EmulatorCloud is the Cloud of an emulator.
const EmulatorCloud = "emulator"

// Report is the result of a probe. It does not identify the subscription.
type Report struct {
	Behaviour Behavior  `json:"behaviour"`
	Version   string    `json:"version"`
	When      time.Time `json:"when"`
	Cloud     string    `json:"cloud"`
	Location  string    `json:"location"`
	// Requests excludes polls.
	Requests   int              `json:"requests"`
	Properties []PropertyResult `json:"properties"`
	Latencies  []Latency        `json:"latencies"`
}

// PropertyResult is a question with its observations.
type PropertyResult struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Assumed     Result `json:"assumed"`
	// Result is empty for an open question, Why otherwise.
	Result Result  `json:"result,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Events []Event `json:"events,omitempty"`
}

// Event is one observation.
type Event struct {
	Action  string   `json:"action"`
	Status  int      `json:"status"`
	Codes   []string `json:"codes,omitempty"`
	State   string   `json:"state,omitempty"`
	Details string   `json:"details,omitempty"`
}

// CountOpen counts the questions without an answer.
func (r Report) CountOpen() int {
	n := 0
	for _, f := range r.Properties {
		if f.Result == "" {
			n++
		}
	}
	return n
}

// Span is a duration with bounds, because polls observe it.
type Span struct {
	AtLeastSeconds float64 `json:"atLeastSeconds"`
	AtMostSeconds  float64 `json:"atMostSeconds"`
}

// Latency summarizes one kind of write, from the request to the end of its operation.
type Latency struct {
	Write string `json:"write"`
	Count int    `json:"count"`
	// Immediate counts writes that had finished with the first response.
	Immediate int  `json:"immediate"`
	Median    Span `json:"median"`
	Longest   Span `json:"longest"`
}

// EncodeJSON encodes the report.
func (r Report) EncodeJSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return append(text, '\n'), nil
}

// MaxReport limits a report that is read, in bytes.
const MaxReport = 1 << 20

// ParseReport decodes a report; only the behavior is required.
func ParseReport(text []byte) (Report, error) {
	var r Report
	if len(text) > MaxReport {
		return r, fmt.Errorf("larger than %d bytes, which no report is", MaxReport)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var keys map[string]json.RawMessage
	if err := dec.Decode(&keys); err != nil {
		return r, fmt.Errorf("want a JSON object, as weirlab probe-azure --out writes it: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("more follows after the JSON object")
	}
	fields := map[string]any{
		"behaviour": &r.Behaviour, "version": &r.Version, "when": &r.When, "cloud": &r.Cloud, "location": &r.Location,
		"requests": &r.Requests, "properties": &r.Properties, "latencies": &r.Latencies,
	}
	if keys["behaviour"] == nil {
		return r, errors.New(`the key "behaviour" is missing`)
	}
	for key, value := range keys {
		field, known := fields[key]
		if !known {
			return Report{}, fmt.Errorf("the key %.100q is unknown: use %s", key, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.DisallowUnknownFields()
		if err := dec.Decode(field); err != nil {
			return Report{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	return r, nil
}
