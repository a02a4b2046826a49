// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsResponse reports whether the error is a response of the API server.
func IsResponse(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

// IsTransient reports whether the error may be transient: no response, 429 or 5xx.
func IsTransient(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
