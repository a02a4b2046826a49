# docker build -t weir:dev .
# docker build -t weir-provisioner:dev --target provisioner .
# Base images are pinned by digest. To look up another digest:
#   docker buildx imagetools inspect golang:1.26.8-bookworm
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X weir.dev/weir/internal/app/process.Version=$VERSION" -o / ./cmd/weir ./cmd/weir-provisioner

FROM scratch AS provisioner
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /weir-provisioner /usr/bin/weir-provisioner
USER 65532:65532
ENTRYPOINT ["/usr/bin/weir-provisioner"]

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /weir /usr/bin/weir
# As in ko's image, kubectl exec … -- weir works.
ENV PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["/usr/bin/weir"]
