// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"weir.dev/weir/internal/armerror"
)

func (d *documentClient) resourceVersion(t target) string {
	return d.versions.ResourceVersion(t.id.Type, t.id.String())
}

// requiredVersion returns the api-version that a rejection requires; empty if there is none newer than
// sent.
func requiredVersion(err error, sent string) string {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.StatusCode != http.StatusBadRequest {
		return ""
	}
	if !slices.Contains(parseCodes(answer.RawResponse), armerror.CodeOldAPIVersion) {
		return ""
	}
	newest := ""
	for _, e := range parseErrors(answer.RawResponse) {
		newest = max(newest, findNewerVersion(e.Message, sent))
	}
	return newest
}

// writeWithVersion reads the resource with a newer api-version and writes it once. It needs only read
// permission. If the provider lacks the api-version, it returns rejected.
func (d *documentClient) writeWithVersion(ctx context.Context, r request, version string, rejected error) (acceptedWrite, error) {
	doc, err := d.readVersion(ctx, r.call.target, version)
	if err != nil {
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && rejected != nil && isVersionUnsupported(answer) {
			return acceptedWrite{}, rejected
		}
		return acceptedWrite{}, err
	}
	d.versions.StoreVersion(r.call.id.String(), version)
	*r.origin = doc
	body, err := r.encodeBody()
	if err != nil {
		return acceptedWrite{}, err
	}
	r.call = &call{op: r.call.op, target: r.call.target}
	return d.sendWrite(ctx, r, version, body)
}

func isVersionUnsupported(answer *azcore.ResponseError) bool {
	return slices.ContainsFunc(parseCodes(answer.RawResponse), func(code string) bool {
		return slices.Contains([]string{"NoRegisteredProviderFound", "InvalidApiVersionParameter", "InvalidResourceType"}, code)
	})
}
