# docker build -t weir:dev .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X weir.dev/weir/internal/app.Version=$VERSION" -o /weir ./cmd/weir

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /weir /weir
USER 65532:65532
ENTRYPOINT ["/weir"]
