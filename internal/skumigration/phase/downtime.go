// SPDX-License-Identifier: Apache-2.0

package phase

import "time"

// Median duration of Azure requests, from published recordings.
const (
	interfaceTime    = 52 * time.Second
	modelTime        = 47 * time.Second
	upgradeTime      = 61 * time.Second
	instanceTime     = 30 * time.Second
	deleteTime       = 10 * time.Second
	publicIPTime     = 3 * time.Second
	loadBalancerTime = 4 * time.Second
)

// MaxConcurrent limits the concurrent requests of a step.
const MaxConcurrent = 20

// UnavailableTime estimates how long Services are unreachable: from the first machine that leaves until the
// new load balancers have their rules. Machines that join by network interface need about as long
// again.
func UnavailableTime(steps []Steps) time.Duration {
	var durations time.Duration
	for _, s := range steps {
		var longest time.Duration
		for _, set := range s.ScaleSets {
			var d time.Duration
			if set.Model != nil {
				d += modelTime
			}
			if len(set.Upgrade) > 0 {
				d += upgradeTime
			}
			longest = max(longest, d+time.Duration(len(set.Write))*instanceTime)
		}
		longest = max(longest, batchCount(len(s.Interfaces))*interfaceTime, batchCount(len(s.Delete))*deleteTime)
		switch s.Phase {
		case PhaseStatic: // no interruption
		case PhaseUpgrade:
			durations += max(batchCount(len(s.PublicIPs))*publicIPTime, batchCount(len(s.Put))*loadBalancerTime)
		case PhaseCreate:
			durations += 2 * batchCount(len(s.Put)) * loadBalancerTime // with its rules
		default:
			durations += longest
		}
	}
	return durations
}

func batchCount(n int) time.Duration { return time.Duration((n + MaxConcurrent - 1) / MaxConcurrent) }
