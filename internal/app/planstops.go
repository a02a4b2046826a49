// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/removal"
)

// readRecord looks for the record where Weir is, or is installed. Whoever plans may have no right
// to read it, and what it would say is in the plan all the same: new load balancers.
func readRecord(ctx context.Context, reader client.Reader, objects kube.Objects) kube.Record {
	r, err := kube.ReadRecord(ctx, reader, kube.NamespaceOfNodePools(objects.Pools, shippedNamespace))
	if err == nil {
		return r
	}
	return kube.Record{}
}

// stops say why the controller would not start, or what it would not do by itself.
func (p *planning) stops(taken int) []string {
	var all []string
	if err := p.record.Contradicts(p.ClusterName, place(p.cfg)); err != nil {
		all = append(all, "the controller would not start: "+err.Error())
	}
	addressed := 0
	for _, s := range p.cluster.Served() {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			addressed++
		}
	}
	if removal.Many(taken, addressed) {
		all = append(all, fmt.Sprintf("the controller would wait before it takes addresses from %d of %d Services, for nobody has asked for it: each waits for its annotation %s, or all for --allow-removal",
			taken, addressed, kube.AllowRemovalAnnotation))
	}
	return all
}
