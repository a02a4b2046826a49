// SPDX-License-Identifier: Apache-2.0

package demo

import "fmt"

// comparison is a row of docs/reference/lag.md: the same change under the schedule of cloud-provider-azure, and with Weir.
// Each value is the median and the 99th percentile of the lag in seconds, with serial writes of 2 s.
type comparison struct{ change, schedule, weir string }

const comparisonPage = "docs/reference/lag.md"

func (c comparison) String() string {
	return fmt.Sprintf("%s: %s s with pools written one by one every 30 s, as by cloud-provider-azure; %s s with Weir (median / p99, %s)", c.change, c.schedule, c.weir, comparisonPage)
}

var (
	isolatedChanges = comparison{"isolated changes", "29.2 / 31.2", "1.8 / 1.8"}
	rollingNodes    = comparison{"rolling restart of 100 nodes", "121.5 / 231.0", "3.7 / 7.6"}
	poolsDrained    = comparison{"drain of 50 pools", "471.5 / 901.5", "9.8 / 19.8"}
	manyServices    = comparison{"100 Services at once", "512.2 / 1010.4", "14.3 / 30.8"}
)
