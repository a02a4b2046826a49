// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/provision"
)

// Table is the retry schedule of a policy if every attempt fails after Attempt.
type Table struct {
	Policy  provision.Policy
	Attempt time.Duration
	JSON    bool
}

// beside returns the reference policy for comparison: slow growth, for targets offline for months. Its counts
// are well known.
func beside() Table {
	return Table{Attempt: 22 * time.Minute, Policy: provision.Policy{
		Retries: 1 << 30, Initial: 30 * time.Second, Factor: 1.048, MaxInterval: 48 * time.Minute, AttemptTimeout: time.Hour,
	}}
}

const mostRows = 100

type tableJSON struct {
	InitialInterval string         `json:"initialInterval"`
	Factor          float64        `json:"factor"`
	MaxInterval     string         `json:"maxInterval"`
	Horizon         string         `json:"horizon,omitempty"`
	Attempt         string         `json:"attempt"`
	RetriesWithin   map[string]int `json:"retriesWithin"`
	Retries         []rowJSON      `json:"retries,omitempty"`
}

type rowJSON struct {
	Retry  int    `json:"retry"`
	Wait   string `json:"wait"`
	Waited string `json:"waited"`
	After  string `json:"after"`
}

func (t Table) within() map[string]int {
	counts := map[string]int{}
	for i, n := range t.Policy.RetriesWithin(t.Attempt, provision.Periods()) {
		counts[provision.Periods()[i].Name] = n
	}
	return counts
}

func (t Table) json(rows bool) tableJSON {
	j := tableJSON{
		InitialInterval: t.Policy.Initial.String(), Factor: t.Policy.Factor, MaxInterval: t.Policy.MaxInterval.String(),
		Attempt: t.Attempt.String(), RetriesWithin: t.within(),
	}
	if t.Policy.Horizon > 0 {
		j.Horizon = t.Policy.Horizon.String()
	}
	if rows {
		for _, r := range t.Policy.Rows(t.Attempt, mostRows) {
			j.Retries = append(j.Retries, rowJSON{r.Retry, r.Wait.String(), r.Waited.String(), r.After.String()})
		}
	}
	return j
}

func (t Table) short() string {
	text := fmt.Sprintf("%s × %v up to %s, %s an attempt", span(t.Policy.Initial), t.Policy.Factor, span(t.Policy.MaxInterval), span(t.Attempt))
	if t.Policy.Horizon > 0 {
		text += ", " + span(t.Policy.Horizon) + " of waiting at most"
	}
	return text
}

// Print writes the table.
func (t Table) Print(out io.Writer) error {
	if t.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Policy tableJSON `json:"policy"`
			Beside tableJSON `json:"beside"`
		}{t.json(true), beside().json(false)})
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	other := beside()
	fmt.Fprintf(w, "RETRIES WITHIN\tTHIS POLICY\tAWAY FOR MONTHS\n")
	mine, others := t.within(), other.within()
	for _, p := range provision.Periods() {
		fmt.Fprintf(w, "%s\t%d\t%d\n", p.Name, mine[p.Name], others[p.Name])
	}
	w.Flush()
	fmt.Fprintf(out, "\nThis policy: %s.\nAway for months, a policy for such links: %s.\nBoth as if no retry were the last.\n\n", t.short(), other.short())
	fmt.Fprintf(w, "RETRY\tWAIT\tALL WAITS\tBEGINS AFTER\n")
	rows := t.Policy.Rows(t.Attempt, mostRows)
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", r.Retry, span(r.Wait), span(r.Waited), span(r.After))
	}
	w.Flush()
	if t.Policy.Retries > len(rows) && len(rows) == mostRows {
		fmt.Fprintf(out, "… and %d more\n", t.Policy.Retries-len(rows))
	}
	return nil
}

// span formats a duration without zero units: 1h30m, not 1h30m0s.
func span(d time.Duration) string {
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
