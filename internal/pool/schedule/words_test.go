// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	"weir.dev/weir/internal/lb"
)

const period = 10 * time.Minute

var web = poolID("kubernetes", "web")

func poolID(lbName, name string) lb.PoolID {
	return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: lbName}, Name: name}
}
