// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

type decoder[T any] func(place lb.ResourceID, shown codec.Document) (T, error)

func readOne[T any](ctx context.Context, c *Client, r Resource, place lb.ResourceID, decode decoder[T]) (T, error) {
	doc, err := c.ReadResource(ctx, r)
	if err != nil {
		var none T
		return none, err
	}
	return decodeResource(place, doc, decode)
}

func listAll[T any](ctx context.Context, c *Client, r Resource, place lb.ResourceID, decode decoder[T]) ([]T, error) {
	docs, err := c.ListResources(ctx, r)
	if err != nil {
		return nil, err
	}
	list := make([]T, 0, len(docs))
	for _, item := range docs {
		resource, err := decodeResource(place, item, decode)
		if err != nil {
			return nil, err
		}
		list = append(list, resource)
	}
	return list, nil
}

func writeResource[T any](ctx context.Context, c *Client, r Resource, method string, origin *any, etag string, encode func() (any, error),
	place lb.ResourceID, decode decoder[T],
) (T, error) {
	doc, err := c.WriteResource(ctx, r, method, origin, etag, encode)
	if err != nil {
		var none T
		return none, err
	}
	return decodeResource(place, doc, decode)
}

func decodeResource[T any](place lb.ResourceID, doc codec.Document, decode decoder[T]) (T, error) {
	value, err := decode(place, doc)
	if err != nil {
		var none T
		return none, unexpectedFormat(place, err)
	}
	return value, nil
}

func unexpectedFormat(place lb.ResourceID, err error) error {
	return armerror.Classify(armerror.Failure{ResultUnknown: true}, fmt.Errorf("%s: unexpected format of the response: %w", place.Type, err))
}

func ignoreNotFound(err error) error {
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		return nil
	}
	return err
}

// neverCreate marks a resource as existing: a write of one that was not read fails instead of creating it.
func neverCreate(origin *any) {
	if *origin == nil {
		*origin = codec.Document{}
	}
}
