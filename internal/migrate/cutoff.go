// SPDX-License-Identifier: Apache-2.0

package migrate

import "time"

// Median duration of Azure requests, from published recordings.
const (
	ofInterface = 52 * time.Second
	ofModel     = 47 * time.Second
	ofUpgrade   = 61 * time.Second
	ofInstance  = 30 * time.Second
	ofDelete    = 10 * time.Second
	ofPublicIP  = 3 * time.Second
	ofBalancer  = 4 * time.Second
)

// AtATime limits the concurrent requests of a step.
const AtATime = 20

// CutOff estimates how long Services are unreachable: from the first machine that leaves until the
// new load balancers have their rules. Machines that join by network interface need about as long
// again.
func CutOff(steps []Steps) time.Duration {
	var all time.Duration
	for _, s := range steps {
		var longest time.Duration
		for _, set := range s.ScaleSets {
			var d time.Duration
			if set.Model != nil {
				d += ofModel
			}
			if len(set.Upgrade) > 0 {
				d += ofUpgrade
			}
			longest = max(longest, d+time.Duration(len(set.Write))*ofInstance)
		}
		longest = max(longest, waves(len(s.Interfaces))*ofInterface, waves(len(s.Delete))*ofDelete)
		switch s.Phase {
		case Static: // no interruption
		case Upgrade:
			all += max(waves(len(s.PublicIPs))*ofPublicIP, waves(len(s.Put))*ofBalancer)
		case Make:
			all += 2 * waves(len(s.Put)) * ofBalancer // with its rules
		default:
			all += longest
		}
	}
	return all
}

func waves(n int) time.Duration { return time.Duration((n + AtATime - 1) / AtATime) }
