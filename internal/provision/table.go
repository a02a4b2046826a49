// SPDX-License-Identifier: Apache-2.0

package provision

import "time"

// Period is a time span for counting retries.
type Period struct {
	Name string
	Long time.Duration
}

// Periods are the columns of the table.
func Periods() []Period {
	const day = 24 * time.Hour
	return []Period{{"1 day", day}, {"1 week", 7 * day}, {"1 month", 30 * day}, {"1 year", 365 * day}}
}

// RetriesWithin returns how many retries start within each period, ignoring p.Retries.
func (p Policy) RetriesWithin(attempt time.Duration, periods []Period) []int {
	counts := make([]int, len(periods))
	longest := time.Duration(0)
	for _, within := range periods {
		longest = max(longest, within.Long)
	}
	var waited time.Duration
	at := attempt
	for n := 1; p.Horizon == 0 || waited < p.Horizon; n++ {
		wait := p.Wait(n)
		if p.Horizon > 0 {
			wait = min(wait, p.Horizon-waited)
		}
		waited += wait
		if at += wait; at > longest {
			break
		}
		for i, within := range periods {
			if at <= within.Long {
				counts[i]++
			}
		}
		at += attempt
	}
	return counts
}

// Row is one retry of the table.
type Row struct {
	Retry int
	Wait  time.Duration
	// After is the start of the retry, from the start of the first attempt.
	Waited, After time.Duration
}

// Rows returns at most limit retries of a policy.
func (p Policy) Rows(attempt time.Duration, limit int) []Row {
	var rows []Row
	var waited time.Duration
	for n := 1; n <= min(p.Retries, limit) && (p.Horizon == 0 || waited < p.Horizon); n++ {
		wait := p.Wait(n)
		if p.Horizon > 0 {
			wait = min(wait, p.Horizon-waited)
		}
		waited += wait
		rows = append(rows, Row{n, wait, waited, waited + time.Duration(n)*attempt})
	}
	return rows
}
