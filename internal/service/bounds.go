// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"

	"weir.dev/weir/internal/lb"
)

// What one Service may list. Each is what Azure takes in all, so whoever lists more would be
// refused there, after everybody else has waited for the work.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	mostRanges         = lb.MostSecurityPrefixes
	mostServiceTags    = lb.MostSecurityRules // each is a rule of its own
	mostAdditional     = lb.MostSecurityPrefixes
	mostRules          = 1500 // of a Standard load balancer
	mostConfigurations = 1000 // load balancers of a subscription in a region
	mostIPTags         = lb.MostTags
)

// mostProblems is how many problems of one Service are told: whoever mends these hears of the
// others.
const mostProblems = 10

// tooMany says that a list is too long, and reports so. unit says what is listed.
func (r *reader) tooMany(field string, n, most int, unit, because string) bool {
	if n <= most {
		return false
	}
	r.wrong(field, fmt.Sprintf("%d %s", n, unit), fmt.Sprintf("at most %d: %s", most, because))
	return true
}
