// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
)

func targetAttributes(ctx context.Context) []attribute.KeyValue {
	c := callOf(ctx)
	if c == nil {
		return nil
	}
	kvs := []attribute.KeyValue{attribute.String("weir.operation", c.op)}
	if id, ok := c.loadBalancer(); ok {
		kvs = append(kvs, attribute.String("azure.load_balancer", id.String()))
	} else {
		kvs = append(kvs, attribute.String("azure.resource", c.armID()))
	}
	if c.pool != "" {
		kvs = append(kvs, attribute.String("azure.backend_pool", c.pool))
	}
	return kvs
}
