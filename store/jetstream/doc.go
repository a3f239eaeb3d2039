// Package jetstream stores sessions in JetStream, the storage of NATS.
package jetstream
