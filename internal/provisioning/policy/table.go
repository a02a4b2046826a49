// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Period is a time span for counting retries.
type Period struct {
	Name string
	Long time.Duration
}

// TablePeriods are the columns of the table.
func TablePeriods() []Period {
	const day = 24 * time.Hour
	return []Period{{"1 day", day}, {"1 week", 7 * day}, {"1 month", 30 * day}, {"1 year", 365 * day}}
}

// CountRetries returns how many retries start within each period, ignoring p.Retries.
func (p Policy) CountRetries(attempt time.Duration, periods []Period) []int {
	counts := make([]int, len(periods))
	longest := time.Duration(0)
	for _, within := range periods {
		longest = max(longest, within.Long)
	}
	var waited time.Duration
	at := attempt
	for n := 1; p.Horizon == 0 || waited < p.Horizon; n++ {
		wait := p.RetryInterval(n)
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

// TableRow is one retry of the table.
type TableRow struct {
	Retry int
	Wait  time.Duration
	// After is the start of the retry, from the start of the first attempt.
	TotalWait, After time.Duration
}

// TableRows returns at most limit retries of a policy.
func (p Policy) TableRows(attempt time.Duration, limit int) []TableRow {
	var rows []TableRow
	var waited time.Duration
	for n := 1; n <= min(p.Retries, limit) && (p.Horizon == 0 || waited < p.Horizon); n++ {
		wait := p.RetryInterval(n)
		if p.Horizon > 0 {
			wait = min(wait, p.Horizon-waited)
		}
		waited += wait
		rows = append(rows, TableRow{n, wait, waited, waited + time.Duration(n)*attempt})
	}
	return rows
}
