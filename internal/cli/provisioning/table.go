// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/provisioning/policy"
)

// RetrySchedule is the retry schedule of a policy if every attempt fails after Attempt.
type RetrySchedule struct {
	Policy  policy.Policy
	Attempt time.Duration
	JSON    bool
}

// referenceSchedule returns the reference policy for comparison: slow growth, for targets offline for months. Its counts
// are well known.
func referenceSchedule() RetrySchedule {
	return RetrySchedule{Attempt: 22 * time.Minute, Policy: policy.Policy{
		Retries: 1 << 30, Initial: 30 * time.Second, Factor: 1.048, MaxInterval: 48 * time.Minute, AttemptTimeout: time.Hour,
	}}
}

const maxRows = 100

type scheduleJSON struct {
	InitialInterval string         `json:"initialInterval"`
	Factor          float64        `json:"factor"`
	MaxInterval     string         `json:"maxInterval"`
	Horizon         string         `json:"horizon,omitempty"`
	Attempt         string         `json:"attempt"`
	RetriesWithin   map[string]int `json:"retriesWithin"`
	Retries         []retryJSON    `json:"retries,omitempty"`
}

type retryJSON struct {
	Retry  int    `json:"retry"`
	Wait   string `json:"wait"`
	Waited string `json:"waited"`
	After  string `json:"after"`
}

func (s RetrySchedule) retriesWithin() map[string]int {
	counts := map[string]int{}
	for i, n := range s.Policy.CountRetries(s.Attempt, policy.TablePeriods()) {
		counts[policy.TablePeriods()[i].Name] = n
	}
	return counts
}

func (s RetrySchedule) toJSON(rows bool) scheduleJSON {
	j := scheduleJSON{
		InitialInterval: s.Policy.Initial.String(), Factor: s.Policy.Factor, MaxInterval: s.Policy.MaxInterval.String(),
		Attempt: s.Attempt.String(), RetriesWithin: s.retriesWithin(),
	}
	if s.Policy.Horizon > 0 {
		j.Horizon = s.Policy.Horizon.String()
	}
	if rows {
		for _, r := range s.Policy.TableRows(s.Attempt, maxRows) {
			j.Retries = append(j.Retries, retryJSON{r.Retry, r.Wait.String(), r.TotalWait.String(), r.After.String()})
		}
	}
	return j
}

func (s RetrySchedule) summaryText() string {
	text := fmt.Sprintf("%s × %v up to %s, %s an attempt", formatDuration(s.Policy.Initial), s.Policy.Factor, formatDuration(s.Policy.MaxInterval), formatDuration(s.Attempt))
	if s.Policy.Horizon > 0 {
		text += ", " + formatDuration(s.Policy.Horizon) + " of waiting at most"
	}
	return text
}

// WriteTable writes the table.
func (s RetrySchedule) WriteTable(out io.Writer) error {
	if s.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Policy scheduleJSON `json:"policy"`
			Beside scheduleJSON `json:"beside"`
		}{s.toJSON(true), referenceSchedule().toJSON(false)})
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	other := referenceSchedule()
	fmt.Fprintf(w, "RETRIES WITHIN\tTHIS POLICY\tAWAY FOR MONTHS\n")
	own, others := s.retriesWithin(), other.retriesWithin()
	for _, p := range policy.TablePeriods() {
		fmt.Fprintf(w, "%s\t%d\t%d\n", p.Name, own[p.Name], others[p.Name])
	}
	w.Flush()
	fmt.Fprintf(out, "\nThis policy: %s.\nAway for months, a policy for such links: %s.\nBoth as if no retry were the last.\n\n", s.summaryText(), other.summaryText())
	fmt.Fprintf(w, "RETRY\tWAIT\tALL WAITS\tBEGINS AFTER\n")
	rows := s.Policy.TableRows(s.Attempt, maxRows)
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", r.Retry, formatDuration(r.Wait), formatDuration(r.TotalWait), formatDuration(r.After))
	}
	w.Flush()
	if s.Policy.Retries > len(rows) && len(rows) == maxRows {
		fmt.Fprintf(out, "… and %d more\n", s.Policy.Retries-len(rows))
	}
	return nil
}

// formatDuration formats a duration without zero units: 1h30m, not 1h30m0s.
func formatDuration(d time.Duration) string {
	text := d.Round(time.Millisecond).String()
	if d >= time.Minute {
		text = d.Round(time.Second).String()
		text = strings.TrimSuffix(text, "0s")
		if !strings.HasSuffix(text, "m") {
			return d.Round(time.Second).String()
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
	}
	return text
}
