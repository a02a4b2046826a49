// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"
)

// maxHealthPools limits the reads of health for one explanation: Azure counts each as a write.
const maxHealthPools = 10

// addHealth adds what Azure's probes report. A failure is one line, and everything else remains.
func (r Reader) addHealth(ctx context.Context, explanation *Explanation) {
	if r.Health == nil {
		return
	}
	for i := range explanation.Pools {
		p := &explanation.Pools[i]
		if i >= maxHealthPools {
			explanation.HealthError = fmt.Sprintf("of %d pools, that of %d was read", len(explanation.Pools), maxHealthPools)
			return
		}
		reported, err := r.Health(ctx, p.Namespace, p.Name)
		if err != nil { // that of the other pools fails for the same reason
			explanation.HealthError = strings.Join(strings.Fields(err.Error()), " ")
			return
		}
		p.HasHealth = true
		for j := range p.Members {
			p.Members[j].Health = reported[p.Members[j].Address]
		}
	}
}
