/* A libnvidia-ml.so.1 for machines without a GPU: what NVML answers, in NVML's own binary interface.
 *
 * NVML_STUB names a folder whose files are the state of the machine, looked up at every call:
 *   gpus         number of GPUs (2)
 *   mismatch     the driver's version is not the library's
 *   busy         kernels run: 300 W and 99% instead of 60 W and 0%
 *   lost-N       GPU N has fallen off the bus
 *   fallen-N     the same before NVML was opened: it counts the GPU and gives no handle
 *   no-CALL-N    GPU N does not support CALL (energy, throttle, gpm, instant, processes …)
 *   mig-N        GPU N is in MIG mode, with this many instances
 *   processes    lines of `gpu pid bytes`
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15, MISMATCH = 18 };

typedef struct { int gpu, instance; } Device;
static Device gpus[16], instances[16][8];
static double joules[16], looked[16];

static int has(const char *name, int gpu, int missing) {
    char path[4096], line[64] = "";
    if (gpu < 0) snprintf(path, sizeof path, "%s/%s", getenv("NVML_STUB"), name);
    else snprintf(path, sizeof path, "%s/%s-%d", getenv("NVML_STUB"), name, gpu);
    FILE *file = fopen(path, "r");
    if (!file) return missing;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
    return line[0] ? atoi(line) : 1;
}

static int state(Device *device, const char *call) {
    char name[64];
    if (has("lost", device->gpu, 0)) return LOST;
    snprintf(name, sizeof name, "no-%s", call);
    return has(name, device->gpu, 0) ? NOT_SUPPORTED : OK;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static double watts(void) { return has("busy", -1, 0) ? 300.0 : 60.0; }

#define ANSWER(call) int code = state(device, call); if (code) return code

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    for (int gpu = 0; gpu < 16; gpu++) {
        gpus[gpu] = (Device){gpu, -1};
        for (int i = 0; i < 8; i++) instances[gpu][i] = (Device){gpu, i};
    }
    return has("mismatch", -1, 0) ? MISMATCH : OK;
}
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "999.1"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = has("gpus", -1, 2); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    *device = &gpus[index];
    return has("fallen", index, 0) ? LOST : OK;
}
int nvmlDeviceGetName(Device *device, char *text, unsigned size) {
    snprintf(text, size, "Stub GPU %d", device->gpu);
    return OK;
}
int nvmlDeviceGetUUID(Device *device, char *text, unsigned size) {
    if (device->instance < 0) snprintf(text, size, "GPU-%08d-stub", device->gpu);
    else snprintf(text, size, "MIG-%04d%04d-stub", device->gpu, device->instance);
    return OK;
}

int nvmlDeviceGetMemoryInfo(Device *device, unsigned long long *memory) {
    ANSWER("memory");
    unsigned long long gib = 1ull << 30, total = device->instance < 0 ? 80 : 20;
    memory[0] = total * gib;
    memory[2] = (device->instance < 0 ? 40 : 5 + device->instance) * gib;
    memory[1] = memory[0] - memory[2];
    return OK;
}
int nvmlDeviceGetPowerManagementLimit(Device *device, unsigned *milliwatts) {
    ANSWER("limit");
    *milliwatts = 700000;
    return OK;
}
int nvmlDeviceGetUtilizationRates(Device *device, unsigned *rates) {
    ANSWER("utilisation");
    if (has("mig", device->gpu, 0)) return NOT_SUPPORTED;
    int busy = has("busy", -1, 0);
    rates[0] = busy ? 99 - 10 * device->gpu : 0;
    rates[1] = busy ? 50 : 0;
    return OK;
}

typedef struct {
    unsigned field, scope;
    long long at, latency;
    unsigned type, code;
    union { double d; unsigned u; unsigned long long ull; } value;
} Field;
int nvmlDeviceGetFieldValues(Device *device, int count, Field *fields) {
    if (has("lost", device->gpu, 0)) return LOST;
    for (int i = 0; i < count; i++) {
        fields[i].code = state(device, "instant");
        fields[i].value.u = watts() * 1000;
    }
    return OK;
}
int nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) {
    ANSWER("power");
    *milliwatts = watts() * 1000;
    return OK;
}
int nvmlDeviceGetTotalEnergyConsumption(Device *device, unsigned long long *millijoules) {
    ANSWER("energy");
    double at = now();
    if (looked[device->gpu]) joules[device->gpu] += watts() * (at - looked[device->gpu]);
    looked[device->gpu] = at;
    *millijoules = joules[device->gpu] * 1000;
    return OK;
}

int nvmlDeviceGetClockInfo(Device *device, unsigned kind, unsigned *mhz) {
    ANSWER("clock");
    *mhz = kind == 1 ? 1980 : 2619;
    return OK;
}
int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    ANSWER("temperature");
    *celsius = 65;
    return OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *bits) {
    ANSWER("throttle");
    *bits = has("busy", -1, 0) ? has("throttled", device->gpu, 0x4) : 0x1;
    return OK;
}
int nvmlDeviceGetPcieThroughput(Device *device, unsigned direction, unsigned *kib_per_s) {
    ANSWER("pcie");
    usleep(20000); /* as long as the real one takes */
    *kib_per_s = 1000 * (direction + 1);
    return OK;
}

typedef struct { unsigned pid; unsigned long long bytes; unsigned instance, compute; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *found) {
    ANSWER("processes");
    char path[4096];
    unsigned room = *count, gpu, pid;
    unsigned long long bytes;
    snprintf(path, sizeof path, "%s/processes", getenv("NVML_STUB"));
    FILE *file = fopen(path, "r");
    *count = 0;
    if (!file) return OK;
    while (fscanf(file, "%u %u %llu", &gpu, &pid, &bytes) == 3) {
        if (gpu != (unsigned)device->gpu) continue;
        if (found && *count < room) found[*count] = (Process){pid, bytes, ~0u, ~0u};
        ++*count;
    }
    fclose(file);
    return *count > room ? TOO_SMALL : OK;
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    int count = has("mig", device->gpu, 0);
    if (!count) return NOT_SUPPORTED;
    *current = *pending = 1;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) { (void)device; *count = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **instance) {
    if (index >= (unsigned)has("mig", device->gpu, 0)) return NOT_FOUND;
    *instance = &instances[device->gpu][index];
    return OK;
}

int nvmlGpmQueryDeviceSupport(Device *device, unsigned *answer) {
    answer[1] = state(device, "gpm") == OK;
    return OK;
}
int nvmlGpmSampleAlloc(void **sample) { *sample = calloc(1, sizeof(double)); return OK; }
int nvmlGpmSampleGet(Device *device, double *sample) { ANSWER("gpm"); *sample = now(); return OK; }
typedef struct { unsigned metric, code; double value; const char *names[3]; } Metric;
typedef struct { unsigned version, count; double *before, *after; Metric metrics[1]; } Metrics;
int nvmlGpmMetricsGet(Metrics *asked) {
    if (*asked->after <= *asked->before) return 2;
    for (unsigned i = 0; i < asked->count; i++) {
        asked->metrics[i].code = OK;
        asked->metrics[i].value = has("busy", -1, 0) ? 5.0 * asked->metrics[i].metric : 0.0;
    }
    return OK;
}
